"""What the lakehouse measures of itself."""

from datetime import timedelta

from lakehouse.tables.upkeep import Upkeep

# Each run commits to these tables, and nobody travels in time in them.
UPKEEP = Upkeep(keep_snapshots_for=timedelta(days=7), metadata_files=20)
