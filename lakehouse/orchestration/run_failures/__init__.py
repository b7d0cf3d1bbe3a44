"""Error texts of failed runs in the Dagster UI."""
