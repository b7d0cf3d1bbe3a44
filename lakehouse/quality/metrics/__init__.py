"""What each run measured of each table, kept for trends, and told where it is out of the
ordinary.
"""
