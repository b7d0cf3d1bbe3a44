"""Storage of files: folders and buckets through one interface, and atomic file writes."""
