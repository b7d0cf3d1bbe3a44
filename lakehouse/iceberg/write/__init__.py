"""Writes of tables: prepare, stage on a branch, audit, publish; and the quarantine."""
