"""The steps of an erasure. Each looks at what is there, and does what is left to do."""
