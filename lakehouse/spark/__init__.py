"""Spark: session, JVM, jars, servers and executors."""
