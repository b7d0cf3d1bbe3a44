"""Dagster's side: asset decorator, IO manager, asset checks, runs, and what is recorded of
them.
"""
