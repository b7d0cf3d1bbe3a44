"""Runs: which are due, their execution, progress and results."""
