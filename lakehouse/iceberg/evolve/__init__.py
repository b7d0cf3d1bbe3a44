"""From a table as it is to a table as declared: a plan that can be printed, and its steps."""
