"""What Spark runs on: Java, its jars, the session, and the warm server."""
