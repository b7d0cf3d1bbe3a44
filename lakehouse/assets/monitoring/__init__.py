"""Metrics of the lakehouse itself."""

from datetime import timedelta

from lakehouse.tables.upkeep import Upkeep

# Each run commits to these tables, and time travel is not needed. PyIceberg copies the metadata
# many times per commit: an append took 0.03 CPU seconds with 2 snapshots, and 0.29 with 360.
UPKEEP = Upkeep(keep_snapshots_for=timedelta(days=1))
