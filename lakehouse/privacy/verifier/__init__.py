"""A search for data subjects in every file below a home or in a bucket.

`docs/erasure.md` lists what it cannot find.
"""
