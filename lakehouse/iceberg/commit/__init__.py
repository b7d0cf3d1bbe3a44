"""Commits: lock, branch, properties and retries."""
