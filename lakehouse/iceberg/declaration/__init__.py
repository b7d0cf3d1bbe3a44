"""What a declaration is made of: types, partition transforms, and what contradicts what."""
