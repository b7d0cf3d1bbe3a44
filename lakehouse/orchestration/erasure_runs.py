"""The runs that carry requests to erase people on: what they are called, and which request each is
about.
"""

JOB = "erase_people"
REQUEST_TAG = "lakehouse/erasure"
"""Key of the tag that says the id of the request; no value of a person is in it."""
