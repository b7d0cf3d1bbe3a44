"""Declarations of feeds and tables that are generated from files and other tables.

`sample_files` reads, `feed_plan` guesses, `…_text` generates code; only `write_files` writes.
"""
