"""Keys of run tags that only the code reads."""

HIDDEN_PREFIX = ".dagster/lakehouse_"
"""Dagster's UI shows no tag whose key starts with `.dagster/`."""
