"""What a metric's own recent past suggests of its newest value, and the words for it; pure,
without Dagster.
"""
