"""What must hold of the tables: rules that look further than one table, as checks."""
