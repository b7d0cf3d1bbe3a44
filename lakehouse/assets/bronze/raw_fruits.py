"""`bronze.raw_fruits`: fruits as they were delivered."""
