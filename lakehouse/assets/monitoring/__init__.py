"""What the lakehouse measures of itself."""

from datetime import timedelta

from lakehouse.tables.upkeep import Upkeep

# Each run commits to these tables, and nobody travels in time in them. PyIceberg copies what the
# metadata holds many times in each commit: an append took 0.03 s of the processor with 2
# snapshots, and 0.29 s with 360.
UPKEEP = Upkeep(keep_snapshots_for=timedelta(days=1))
