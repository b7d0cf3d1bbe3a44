"""What the machinery runs on: the JVM, its jars, the Spark session, and the resources that Dagster is given."""
