"""Partitions of Dagster and bounds in tables."""
