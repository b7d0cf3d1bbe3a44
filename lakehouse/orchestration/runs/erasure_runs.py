"""Names of the job, the sensor and the run tag of erasure requests."""

JOB = "erase_people"
SENSOR = "erase_when_due"
REQUEST_TAG = "lakehouse/erasure"
"""Key of the tag that says the id of the request; no value of a person is in it."""
