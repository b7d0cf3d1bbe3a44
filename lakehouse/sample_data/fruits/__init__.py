"""Four deliveries of feed `fruits`."""
