"""What a table promises to those who read it, in a form that other tools know."""
