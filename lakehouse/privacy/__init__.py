"""A person is erased from everything that the lakehouse holds, by request, and it is proved:
who holds a person, requests and their states, the places outside of tables, the verifier.
"""
