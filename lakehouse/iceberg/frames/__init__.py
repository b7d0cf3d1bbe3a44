"""Spark DataFrames, their jobs and their errors."""
