"""Data quality checks that involve more than one table or run."""
