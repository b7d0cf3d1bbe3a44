"""Performance, measured side by side in one run and stated as a ratio; `make bench` runs all of
it.
"""
