"""What exists: one file for each table, which holds its declaration and the function that
computes it.
"""
