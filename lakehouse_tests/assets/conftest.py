"""A home whose inbox can be filled, and the ingest of what waits in it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

from lakehouse.definitions import FEEDS, TABLES, definitions
from lakehouse.iceberg.engine import Engine
from lakehouse.iceberg.history import read_history
from lakehouse.ingestion.catch_up import IngestResult, ingest
from lakehouse.resources.engine import open_engine
from lakehouse.resources.instance import open_instance
from lakehouse.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST_SECOND = 1_700_000_000


@dataclass
class Fruits:
    """The fruits pipeline on a home of its own."""

    settings: Settings

    @cached_property
    def engine(self) -> Engine:
        """The engine of the home."""
        return open_engine(self.settings)

    def put(self, name: str, *rows: str, second: int = 0, header: str = "id,fruit,berry") -> Path:
        """Put a file into the inbox; `second` orders it among others."""
        path = self.settings.home / "inbox" / "fruits" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([header, *rows]), encoding="utf-8")
        os.utime(path, (FIRST_SECOND + second,) * 2)
        return path

    def put_samples(self) -> None:
        """Put the four sample files into the inbox."""
        for sample in files("lakehouse.sample_data.fruits").iterdir():
            if sample.name.endswith(".csv"):
                header, *rows = sample.read_text(encoding="utf-8").split("\n")
                self.put(sample.name, *rows, header=header)

    def ingest(self) -> IngestResult:
        """Ingest what waits."""
        return ingest(definitions, TABLES, self.settings, FEEDS["fruits"])

    def rows(self, query: str) -> list[tuple]:
        """The rows of a query."""
        return [tuple(row) for row in self.engine.sql(query).collect()]

    def silver(self) -> dict[str, tuple[int, bool]]:
        """What `silver.fruits` says of each fruit."""
        found = self.rows("SELECT fruit, id, berry FROM silver.fruits")
        return {name: (number, berry) for name, number, berry in found}

    def snapshots(self) -> Mapping[str, int | None]:
        """The snapshot that readers see of each table."""
        found = {name: read_history(self.engine, name).main for name in self.engine.catalog.tables()}
        return {name: main.snapshot_id if main else None for name, main in found.items()}

    def recorded(self, read: Any) -> Any:
        """Ask Dagster's instance."""
        with open_instance(self.settings) as instance:
            return read(instance)

    def materializations(self, table: str) -> int:
        """How often Dagster has recorded one of a table."""
        key = dg.AssetKey(table.split("."))
        return len(self.recorded(lambda instance: instance.fetch_materializations(key, limit=100).records))


@pytest.fixture
def fruits(spark: "SparkSession", settings: Settings) -> Fruits:
    """The fruits pipeline, with an empty inbox; its session is on the JVM of the run."""
    return Fruits(settings)
