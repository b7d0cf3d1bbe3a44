"""A Spark cluster of several processes on this machine, whose workers see no file of the driver's,
and what runs on it.
"""
