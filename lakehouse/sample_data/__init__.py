"""Sample files, published or generated from a seed."""
