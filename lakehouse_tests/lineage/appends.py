"""Appends without a JVM, and their events."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.write.append_without_spark import DIRECT_APPENDS, append_once
from lakehouse.orchestration.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.tables.table import Append, Column, IcebergTable

NUMBERS = IcebergTable(
    "monitoring.numbers",
    "Counts.",
    [
        Column("name", "string", "The name."),
        Column("parts", "struct<whole:int,rest:array<double>>"),
        Column("at", "timestamp"),
        Column("run_id", "string"),
    ],
    write=Append(once_by=("run_id",)),
    properties=DIRECT_APPENDS,
    owner="data-platform",
)
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def engine_at(settings: Settings) -> Engine:
    """Return an engine that emits events and has no Spark."""
    return replace(open_engine(settings), session=_no_spark)


def append(engine: Engine, run_id: str) -> int | None:
    """Append one row of a run."""
    row = {"name": "one", "at": AT, "run_id": run_id}
    return append_once(engine, NUMBERS, [row], run_id, made_at="at")


def events(file: Path) -> list[dict[str, Any]]:
    """Return the events of a file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]


def types_by_run(file: Path) -> dict[str, list[str]]:
    """Return the event types of each run in order."""
    types: dict[str, list[str]] = {}
    for event in events(file):
        types.setdefault(event["run"]["runId"], []).append(event["eventType"])
    return types


def _no_spark() -> None:
    raise AssertionError("Spark was started")
