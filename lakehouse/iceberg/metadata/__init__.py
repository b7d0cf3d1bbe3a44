"""What Iceberg's metadata tells of a table: snapshots, manifests, refs, commit properties; no
JVM, no scan of data.
"""
