"""A table with all of its history at another place: files are copied, and what names them by path
is written anew; no JVM.
"""
