"""Evolution of tables to their declaration: a plan that can be printed, and its steps."""
