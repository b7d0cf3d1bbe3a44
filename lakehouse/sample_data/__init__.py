"""Files to try the lakehouse with, as they were published or made from a seed."""
