"""Values that the engine passes on: writes, their results, and ranges."""
