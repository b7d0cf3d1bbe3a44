"""From inbox to bronze: read, check and land delivered files, then archive or reject them."""
