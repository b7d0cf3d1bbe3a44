"""Iceberg on Spark, free of Dagster: declarations, evolution, reads, writes, history."""
