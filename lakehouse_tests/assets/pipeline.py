"""A pipeline on a home of its own: its inbox can be filled, and what waits in it ingested."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import dagster as dg

from lakehouse.definitions import FEEDS, TABLES, definitions
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.manifests import files
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.ingestion.feed_runs import IngestResult, ingest
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.deployment import open_engine
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import materialize
from lakehouse.orchestration.runs.run_result import RunResult
from lakehouse.settings import Settings

FIRST_SECOND = 1_700_000_000


@dataclass
class Pipeline:
    settings: Settings
    feed: str

    @cached_property
    def engine(self) -> Engine:
        return open_engine(self.settings)

    @property
    def inbox(self) -> Path:
        return self.settings.home / "inbox" / self.feed

    def write(self, name: str, text: str, *, second: int = 0) -> Path:
        path = self.inbox / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        os.utime(path, (FIRST_SECOND + second,) * 2)
        return path

    def deliver(self, *paths: Path) -> IngestResult:
        self.inbox.mkdir(parents=True, exist_ok=True)
        for path in paths:
            shutil.copy2(path, self.inbox / path.name)
        return self.ingest()

    def ingest(self) -> IngestResult:
        return ingest(definitions, TABLES, self.settings, FEEDS[self.feed])

    def materialize(
        self, *tables: str, partition: str | tuple[str, str] | None = None
    ) -> RunResult:
        selection = dg.AssetSelection.assets(*map(asset_key, tables))
        with open_instance(self.settings) as instance:
            return materialize(
                definitions(lambda: self.settings), instance, selection, partition=partition
            )

    def rows(self, query: str) -> list[tuple]:
        return [tuple(row) for row in self.engine.sql(query).collect()]

    def snapshots(self) -> Mapping[str, int | None]:
        names = [
            name for name in self.engine.catalog.tables() if not name.startswith("monitoring.")
        ]
        found = {name: read_history(self.engine, name).main for name in names}
        return {name: main.snapshot_id if main else None for name, main in found.items()}

    def paths(self, table: str) -> set[str]:
        return {file.path for file in files(self.engine, table)}

    def recorded(self, read: Any) -> Any:
        with open_instance(self.settings) as instance:
            return read(instance)

    def materializations(self, table: str) -> int:
        return len(
            self.recorded(
                lambda found: found.fetch_materializations(asset_key(table), limit=100).records
            )
        )
