"""Tables of a benchmark, written like user code: invoice lines by day, and their sums."""
