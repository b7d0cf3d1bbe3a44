"""Which line of Spark this is: 4, or the 3.5 that AWS Glue 5 and EMR 7 run."""

from importlib.metadata import PackageNotFoundError, version


def spark_line() -> str:
    """The line of the PySpark that is installed, such as `4.1`; empty where none is."""
    try:
        return ".".join(version("pyspark").split(".")[:2])
    except PackageNotFoundError:
        return ""


def is_spark_3() -> bool:
    """Whether it is a line before 4, some of whose calls have other arguments."""
    return spark_line().startswith("3.")
