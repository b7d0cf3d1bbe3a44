"""Where files stand: folders and buckets by the same calls, and files that appear whole or not
at all.
"""
