"""Dagster integration: asset decorator, IO manager, checks, runs and their metadata."""
