"""What each format of a file holds, once it is decoded."""
