"""What is generated, and the truth about it; no test here needs a JVM."""
