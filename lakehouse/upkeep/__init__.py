"""Table maintenance: plans and runs compaction, expiry, orphan removal and statistics."""
