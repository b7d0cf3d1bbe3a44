"""Facts from Iceberg's metadata: snapshots, manifests, refs, commit properties; no JVM."""
