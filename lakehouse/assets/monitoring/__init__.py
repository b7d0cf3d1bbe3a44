"""What the lakehouse measures of itself."""
