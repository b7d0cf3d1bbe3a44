"""Anomaly detection for metrics and its explanations. Pure Python, without Dagster."""
