"""Commands for delivered files and their rows."""
