"""Reads of tables: inputs and their pinned snapshots, quarantined rows, and stale partitions."""
