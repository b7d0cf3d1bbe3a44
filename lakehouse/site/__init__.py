"""A static site of the tables for readers, made without a JVM."""
