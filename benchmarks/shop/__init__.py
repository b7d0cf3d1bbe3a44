"""Tables that a benchmark fills, as somebody's own would be: invoice lines by day, and their
sums.
"""
