"""Where a person may stand outside of tables and delivered files: alerts, Dagster's storage, logs,
the catalog's file, temporary folders, and whatever else lies below the home.
"""
