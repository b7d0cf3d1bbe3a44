"""What must hold of a table: rules on rows, on many rows at once, and on metadata alone."""
