"""Runs that start as forks of a process that has imported Dagster, Spark and Iceberg; a new
Python process needs seconds for these imports.
"""
