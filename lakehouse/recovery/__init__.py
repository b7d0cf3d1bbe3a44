"""What keeps a lakehouse through a change of place or a mistake: its tables in another
deployment.
"""
