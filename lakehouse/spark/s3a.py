"""Hadoop's S3A, by which Spark reads files of the bucket that belong to no table."""

from lakehouse.iceberg.catalog.iceberg_release import is_spark_3
from lakehouse.settings import Settings

_HADOOP = "spark.hadoop."
_CREDENTIALS = {
    False: "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
    # Hadoop 3.3, which Spark 3.5 has, is on the first SDK.
    True: "com.amazonaws.auth.DefaultAWSCredentialsProviderChain",
}
"""The chain that Iceberg asks too; S3A by itself leaves out profiles and web identities."""


def s3a_session_configuration(settings: Settings) -> dict[str, str]:
    """Return the start configuration for `s3://`; EMR and Glue have their own file system."""
    if settings.deployment != "aws":
        return {}
    options = s3a_options(settings) | {
        "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "fs.s3a.aws.credentials.provider": _CREDENTIALS[is_spark_3()],
    }
    if is_spark_3():
        # Hadoop 3.3 removes the markers of all folders above at each file, and a bucket with
        # versions keeps each removal; later ones leave them by themselves.
        options["fs.s3a.directory.marker.retention"] = "keep"
    return {f"{_HADOOP}{name}": value for name, value in options.items()}


def s3a_options(settings: Settings) -> dict[str, str]:
    """Return the options of Spark readers for the endpoint; empty without a bucket."""
    if settings.deployment != "aws":
        return {}
    options = {}
    if settings.region:
        options["fs.s3a.endpoint.region"] = settings.region
    if settings.endpoint_url:
        options["fs.s3a.endpoint"] = settings.endpoint_url
        # As Iceberg's client: the names of an emulator's buckets are no hosts.
        options["fs.s3a.path.style.access"] = "true"
        is_encrypted = settings.endpoint_url.startswith("https://")
        options["fs.s3a.connection.ssl.enabled"] = str(is_encrypted).lower()
    return options
