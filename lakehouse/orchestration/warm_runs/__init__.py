"""Runs as forks of a process with loaded modules, which take seconds to import."""
