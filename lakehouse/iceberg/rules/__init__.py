"""Rules of tables: on single rows, on sets of rows, and on metadata."""
