"""Declarations of tables and feeds: columns, types, partitioning and rules. Pure Python,
without Spark.
"""
