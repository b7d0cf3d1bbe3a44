"""The Iceberg catalog, and the features of its releases."""
