"""Templates of the files that `lakehouse new` writes."""
