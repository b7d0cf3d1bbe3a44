"""Tables of the sample project: one file per table with its declaration and its function."""
