"""Declarations of tables and feeds, in pure Python without Spark."""
