"""When each step of upkeep is due, a file for each step; pure."""
