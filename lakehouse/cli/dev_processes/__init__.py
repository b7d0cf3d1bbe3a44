"""The processes of `lakehouse dev`: Dagster, its UI and a warm Spark server."""
