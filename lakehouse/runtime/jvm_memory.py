"""What Spark and its Java are told that live as long as `lakehouse dev`: most of the time nobody
asks them for anything, and what they had to work with is the machine's.
"""

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
"""What a UI of Spark would show, which is off where there is no cluster. By itself Spark keeps a
thousand jobs, stages and statements with their plans.
"""
