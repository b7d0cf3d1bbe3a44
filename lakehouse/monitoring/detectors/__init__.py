"""What is broken now, and what was since the last look: asked of Dagster's storage, the tables
and the files.
"""
