"""Transactions of a shop's "buy now, pay later", generated with known defects; and the truth
about them.
"""
