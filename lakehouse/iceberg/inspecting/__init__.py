"""What the metadata tells of a table: its files, its past, and what changed between two points of it."""
