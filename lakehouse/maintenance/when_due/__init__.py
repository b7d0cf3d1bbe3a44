"""When each step of upkeep is due beside compaction, a file for each step; pure."""
