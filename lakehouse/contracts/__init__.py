"""Data contracts of tables in a standard format."""
