"""A static site of the tables, for those who only read: made of what metadata, Dagster and the
tables of `monitoring` tell, without a JVM.
"""
