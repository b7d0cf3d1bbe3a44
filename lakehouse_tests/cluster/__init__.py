"""Tests on a Spark cluster whose workers see no files of the driver."""
