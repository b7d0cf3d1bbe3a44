"""What was delivered, as it is used: typed, validated, deduplicated."""
