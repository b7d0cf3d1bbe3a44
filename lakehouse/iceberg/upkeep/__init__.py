"""Upkeep of one table, step by step; what is due, and when, is decided elsewhere."""
