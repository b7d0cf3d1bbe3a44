"""Deletes rows of data subjects from all files of tables, and keeps them out later."""
