"""Tests of the pipelines as a whole, on a home of their own."""
