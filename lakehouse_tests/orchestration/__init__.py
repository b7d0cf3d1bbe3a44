"""Tests of Dagster's side."""
