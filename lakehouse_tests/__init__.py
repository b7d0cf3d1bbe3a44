"""Tests of the lakehouse, in its own layout; three speeds: unit (no JVM), spark, e2e."""
