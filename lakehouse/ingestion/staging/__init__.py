"""Delivered files as staged Parquet, on the driver or on executors."""
