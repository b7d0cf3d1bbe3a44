"""Facts and metrics for queries, computed from silver."""
