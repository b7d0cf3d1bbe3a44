"""What was delivered, as it came: appended, every row stamped with its source."""
