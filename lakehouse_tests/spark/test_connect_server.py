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


def test_a_catalog_that_cannot_be_opened_is_an_error_with_the_required_jars(settings):
    remote = replace(settings, spark_remote="sc://spark:15002")
    message = "Cannot find catalog plugin class for catalog 'lakehouse'"
    with pytest.raises(SetupError) as raised:
        require_server(Session(message), remote, Catalog.of(settings))

    assert "org.apache.iceberg:iceberg-spark-runtime-" in str(raised.value)
    assert message in str(raised.value)


def test_missing_extensions_are_named(settings):
    remote = replace(settings, spark_remote="sc://spark:15002")
    with pytest.raises(
        SetupError, match=r"lacks Iceberg's extensions \(spark\.sql\.extensions\)"
    ):
        require_server(Session("", extensions=""), remote, Catalog.of(settings))
