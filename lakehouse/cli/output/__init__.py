"""Output of commands: tables, CSV, JSON, progress and ingest reports."""
