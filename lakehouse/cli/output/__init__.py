"""What commands print: tables that fit a terminal, CSV and JSON, progress, and what became of
an ingest.
"""
