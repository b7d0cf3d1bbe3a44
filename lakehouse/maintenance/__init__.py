"""Upkeep: what grows by itself is kept to a size."""
