"""Alerts: what fires, once, with the way out, and when it is resolved; and a sign that monitoring
goes on.
"""
