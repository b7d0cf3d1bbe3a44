"""What a Spark Connect server is said to lack."""

from dataclasses import replace

import pytest

from lakehouse.errors import SetupError
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.spark.connect_server import EXTENSIONS, require_server


class Session:
    """One of a server that has Iceberg's extensions, and fails with some words."""

    def __init__(self, said: str, extensions: str = EXTENSIONS) -> None:
        self.said = said
        self.conf = {"spark.sql.extensions": extensions}

    def sql(self, _: str) -> None:
        """Fail, as a catalog does that cannot be opened."""
        raise RuntimeError(self.said)


@pytest.mark.parametrize(
    ("said", "jar"),
    [
        (
            "java.lang.NoClassDefFoundError: software/amazon/awssdk/services/s3/S3Client",
            "of Iceberg for AWS (org.apache.iceberg:iceberg-aws-bundle:",
        ),
        (
            "java.lang.ClassNotFoundException: software.amazon.awssdk.core.SdkClient",
            "of Iceberg for AWS (org.apache.iceberg:iceberg-aws-bundle:",
        ),
        (
            "Cannot find catalog plugin class for catalog 'lakehouse':"
            " org.apache.iceberg.spark.SparkCatalog.",
            "of Iceberg (org.apache.iceberg:iceberg-spark-runtime-",
        ),
    ],
)
def test_the_jar_is_named_that_has_the_class(settings, said, jar):
    remote = replace(settings, spark_remote="sc://spark:15002")
    with pytest.raises(SetupError) as raised:
        require_server(Session(said), remote, Catalog.of(settings))

    assert f"The Spark server at sc://spark:15002 lacks the jar {jar}" in str(raised.value)


def test_missing_extensions_are_named(settings):
    remote = replace(settings, spark_remote="sc://spark:15002")
    with pytest.raises(
        SetupError, match=r"lacks Iceberg's extensions \(spark\.sql\.extensions\)"
    ):
        require_server(Session("", extensions=""), remote, Catalog.of(settings))
