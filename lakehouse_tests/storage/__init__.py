"""Tests of folders and buckets."""
