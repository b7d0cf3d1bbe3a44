"""Delivered rows, append-only, with their source."""
