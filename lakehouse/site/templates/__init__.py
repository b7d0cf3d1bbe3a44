"""How the pages look."""
