"""What changed between two snapshots of a table."""
