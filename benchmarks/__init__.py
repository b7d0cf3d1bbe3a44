"""Benchmarks: alternatives are measured in the same run and reported as ratios; see `make bench`."""
