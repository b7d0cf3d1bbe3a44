"""How a delivered file is read: one module for each format."""
