"""Emits OpenLineage events for each write."""
