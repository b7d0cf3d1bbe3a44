"""Erasure in places that are neither tables nor delivered files."""
