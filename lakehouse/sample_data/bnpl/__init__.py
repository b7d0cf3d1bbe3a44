"""Transactions of a shop's "buy now, pay later", generated with known trouble; and the truth
about them.
"""
