"""What a table and a feed are declared to be: columns, types, partitioning, rules as such;
pure, without Spark.
"""
