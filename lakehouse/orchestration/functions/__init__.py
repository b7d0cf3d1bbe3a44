"""Functions that compute tables: Python or SQL, their source and lineage."""
