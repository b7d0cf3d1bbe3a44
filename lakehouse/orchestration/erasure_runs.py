"""The runs that carry requests to erase people on: what they are called, what asks for them, and
which request each is about.
"""

JOB = "erase_people"
SENSOR = "erase_when_due"
REQUEST_TAG = "lakehouse/erasure"
"""Key of the tag that says the id of the request; no value of a person is in it."""
