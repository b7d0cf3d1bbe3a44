"""Steps on one table that both upkeep and erasure run; a step never waits for a writer."""
