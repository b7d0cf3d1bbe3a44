"""Options of the long-lived Spark of `lakehouse dev`, which is idle most of the time."""

GIVES_BACK = (
    # A release without one of them works as it does by itself.
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:MaxHeapFreeRatio=60",
    "-XX:G1PeriodicGCInterval=600000",
    "-XX:-G1PeriodicGCInvokesConcurrent",
    "-XX:TrimNativeHeapInterval=60000",
)
"""After ten minutes without one, Java collects garbage, and keeps of its heap two and a half times
of what is in use; by itself it never does while nothing happens, and keeps more than three times.
With one and a half times, collecting took a fifth of the processor while small files came. Each
minute it gives back what its compilers had and freed.
"""
KEEPS_LITTLE = {
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.connect.ui.retainedSessions": "10",
    "spark.connect.ui.retainedStatements": "10",
}
"""History of Spark's UI, which is off without a cluster; the defaults are a thousand each."""
