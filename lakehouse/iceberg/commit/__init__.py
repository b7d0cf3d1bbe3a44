"""How a commit is made: its lock, its branch, its properties, and how often it is tried
again.
"""
