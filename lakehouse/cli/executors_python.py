"""The Python of Spark executors, for `lakehouse doctor`."""

from lakehouse.runtime.executor_archive import require_archive
from lakehouse.settings import Settings


def describe_python(settings: Settings) -> str:
    """Return which Python runs Spark's Python tasks; raises SetupError for a bad archive."""
    cluster = settings.cluster
    if not settings.spark_remote and not settings.is_on_cluster:
        unused = (
            "; LAKEHOUSE_EXECUTOR_ARCHIVE is for a cluster" if cluster.executor_archive else ""
        )
        return f"{cluster.executor_python or 'this Python'}, on this machine{unused}"
    if cluster.executor_archive:
        manifest = require_archive(settings, cluster.executor_archive)
        return (
            f"python{manifest.python} of each worker's PATH with {cluster.executor_archive}:"
            f" {manifest.describe()}"
        )
    if cluster.executor_python:
        return f"{cluster.executor_python} of each worker (LAKEHOUSE_EXECUTOR_PYTHON)"
    if settings.spark_remote:
        return "that of the Spark server"
    if cluster.pyspark_python:
        return f"{cluster.pyspark_python} of each worker (PYSPARK_PYTHON)"
    return "python3 of each worker's PATH"
