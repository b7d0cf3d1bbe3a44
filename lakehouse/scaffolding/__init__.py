"""Declarations of feeds and tables that are generated from files and other tables.

`samples` reads files, `feed_plan` guesses, `…_text` renders templates; only `write_files` writes.
"""
