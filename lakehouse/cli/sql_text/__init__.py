"""The text of Spark SQL statements, checked before Spark runs them."""
