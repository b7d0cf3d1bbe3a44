"""Commands for data subjects."""
