"""Commands for a project and its machine."""
