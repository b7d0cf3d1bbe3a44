"""Copy of a table with its history to another location; no JVM."""
