"""How a table is read: inputs and their pins, what was rejected, and which partitions are
stale.
"""
