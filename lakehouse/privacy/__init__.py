"""Erases people from everything that the lakehouse contains, by request, and proves it:
identification, requests and their states, other places than tables, and the verifier.
"""
