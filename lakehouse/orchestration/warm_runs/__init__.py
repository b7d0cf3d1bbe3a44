"""Runs that begin as copies of a process that has imported all they need; Dagster by itself
starts Python anew for each, which takes seconds.
"""
