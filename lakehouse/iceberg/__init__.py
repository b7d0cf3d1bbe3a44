"""Iceberg on Spark, free of Dagster: a table's declaration and rules, how it evolves, is written, read and looked at.

What an asset file imports stands here; the parts behind it are in rooms: `declaration`, `evolving`, `writing`,
`inspecting`.
"""
