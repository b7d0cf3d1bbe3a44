"""Audit trails: append-only, each row contains the hash of the previous row."""
