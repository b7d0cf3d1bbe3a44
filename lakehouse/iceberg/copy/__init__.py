"""Copy of a table with its history to another location: files are copied, and metadata with
paths is rewritten; no JVM.
"""
