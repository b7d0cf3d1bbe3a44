"""Engines that start no Spark, and tables of numbers made without it."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.settings import Settings


def no_spark() -> Any:
    """Fail the test, in place of a session."""
    raise AssertionError("Spark was started")


def engine_without_spark(settings: Settings) -> Engine:
    """Return an engine on the catalog of some settings."""
    return Engine(Catalog.of(settings), no_spark, settings.lock_dir, masking_key=b"testing")


def create_numbers(engine: Engine, name: str, commits: Iterable[list[int]] = ()) -> Table:
    """Create a table with the column `id`, and append some numbers in each commit."""
    client = engine.catalog.client
    client.create_namespace_if_not_exists(name.partition(".")[0])
    table = client.create_table(name, Schema(NestedField(1, "id", LongType())))
    for numbers in commits:
        table.append(pa.table({"id": numbers}))
    return table
