"""What fires now, and what fired since the last round: asked of Dagster's storage, the tables
and the files.
"""
