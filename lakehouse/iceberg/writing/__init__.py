"""The parts of a write: its lock and its branch, what is staged on it, what the rules say, and how it ends."""
