"""Metrics of each run and table: recorded, plotted, and checked for anomalies."""
