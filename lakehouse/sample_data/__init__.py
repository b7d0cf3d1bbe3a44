"""Files to try the lakehouse with, as they were published."""
