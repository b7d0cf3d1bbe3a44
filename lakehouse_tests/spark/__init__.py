"""Tests of what Spark runs on."""
