"""The version line of Spark: 4, or 3.5 on AWS Glue 5 and EMR 7."""

from importlib.metadata import PackageNotFoundError, version


def spark_line() -> str:
    """Return the version line of the installed PySpark, such as `4.1`; empty without one."""
    try:
        return ".".join(version("pyspark").split(".")[:2])
    except PackageNotFoundError:
        return ""


def is_spark_3() -> bool:
    """Whether Spark is older than 4; some of its calls have other arguments."""
    return spark_line().startswith("3.")
