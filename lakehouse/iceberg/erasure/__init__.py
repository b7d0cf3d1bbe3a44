"""Rows of erased people leave a table: from every ref, then from every file that Iceberg keeps;
and they do not come back.
"""
