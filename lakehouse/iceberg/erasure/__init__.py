"""Deletes the rows of data subjects from tables and from all files that Iceberg retains, and
keeps them out of later writes.
"""
