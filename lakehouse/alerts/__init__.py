"""Alerts: detect incidents, group and deliver each message once, and report its resolution."""
