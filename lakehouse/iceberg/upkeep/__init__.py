"""Upkeep steps of one table; the maintenance package decides what is due."""
