"""What a text of Spark SQL holds and may do, told before Spark runs it."""
