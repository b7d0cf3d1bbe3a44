"""Iceberg on Spark, free of Dagster: each folder imports only those below it, from `write` down
to `metadata`.
"""
