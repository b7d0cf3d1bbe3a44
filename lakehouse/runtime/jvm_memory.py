"""Options of the long-lived Spark of `lakehouse dev`, which is idle most of the time."""

GIVES_BACK = (
    # A release without one of them works as it does by itself.
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:MaxHeapFreeRatio=60",
    "-XX:G1PeriodicGCInterval=600000",
    "-XX:-G1PeriodicGCInvokesConcurrent",
    "-XX:TrimNativeHeapInterval=60000",
)
"""An idle JVM collects garbage after ten minutes, and keeps 2.5 times its live heap."""
KEEPS_LITTLE = {
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.connect.ui.retainedSessions": "10",
    "spark.connect.ui.retainedStatements": "10",
}
"""History of Spark's UI, which is off without a cluster; the defaults are a thousand each."""
