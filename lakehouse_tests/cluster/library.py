"""A project whose functions run on executors, its files, and their expected result."""
