"""Differences between two snapshots of a table."""
