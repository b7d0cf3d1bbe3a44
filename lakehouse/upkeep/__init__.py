"""Table maintenance: plans and runs compaction, expiry and orphan removal."""
