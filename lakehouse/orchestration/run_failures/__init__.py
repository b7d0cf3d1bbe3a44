"""What a run that failed shows in the UI, and what it came of."""
