"""When feeds are ingested."""
