"""An Iceberg lakehouse of Dagster assets, computed by Spark."""
