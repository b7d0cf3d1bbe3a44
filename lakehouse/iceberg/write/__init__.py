"""How rows are written: prepared, staged on a branch, audited, published; and what goes to
quarantine.
"""
