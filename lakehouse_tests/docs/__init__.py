"""What the documentation says, done."""
