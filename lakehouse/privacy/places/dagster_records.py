"""Dagster's records of runs, checks and ticks that contain a value are deleted by its own API."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dagster import AssetKey, DagsterInstance

from lakehouse.iceberg.erasure.arrow_ids import text_of
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.privacy.verifier.record_search import unpacked
from lakehouse.settings import Settings
from lakehouse.tables.quoting import identifier

_BATCH_ROWS = 500
_BUSY_SECONDS = 10.0
_OF_ASSETS = ("asset_keys", "asset_check_executions")
"""Tables whose rows are not deleted with their run."""
_Ticks = tuple[str, str]


@dataclass
class _Records:
    """What contains values."""

    runs: set[str] = field(default_factory=set)
    assets: set[str] = field(default_factory=set)
    ticks: set[_Ticks] = field(default_factory=set)
    """Origin and selector of sensors and schedules."""
    others: set[str] = field(default_factory=set)
    """Tables of which no record can be deleted."""

    def __len__(self) -> int:
        return len(self.runs) + len(self.assets) + len(self.ticks)


def delete_dagster_records(
    settings: Settings, has_values: Callable[[bytes], bool], *, is_dry: bool
) -> Iterator[ScrubbedPlace]:
    """Delete the records with values of persons; those of an unfinished run are left.

    Of an asset whose last materialization or check contains a value, the history is wiped.
    """
    records = _Records()
    for file in sorted(settings.dagster_home.rglob("*.db")):
        try:
            _find_records(file, has_values, records)
        except sqlite3.Error as error:
            why = f"SQLite could not read it: {type(error).__name__}."
            name = str(file.relative_to(settings.home))
            yield ScrubbedPlace(name, "not reached", files=1, why=why)
    if not is_dry and len(records):
        with open_instance(settings) as instance:
            alive = _delete(instance, records)
        if alive:
            why = "These runs are not finished; the next call deletes their records."
            yield ScrubbedPlace("Dagster's records of alive runs", "busy", files=alive, why=why)
    if len(records):
        yield ScrubbedPlace("Dagster's records", "removed", files=len(records))
    for table in sorted(records.others):
        why = "A value is in a record that Dagster's API cannot delete."
        yield ScrubbedPlace(f"Dagster's table {table}", "not reached", files=1, why=why)


def _find_records(file: Path, has_values: Callable[[bytes], bool], records: _Records) -> None:
    with closing(connect(file)) as connection:
        query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        for (table,) in connection.execute(query).fetchall():
            cursor = connection.execute(f"SELECT * FROM {identifier(table)}")
            columns = [column[0] for column in cursor.description]
            while rows := cursor.fetchmany(_BATCH_ROWS):
                # Most batches contain none, and are searched at once.
                found = has_values(b"\0".join(map(_content, rows)))
                for row in rows if found else ():
                    if has_values(_content(row)):
                        _add(records, table, dict(zip(columns, row, strict=True)))


def _content(row: tuple[Any, ...]) -> bytes:
    """Return the values of a record as text."""
    texts = [text_of(unpacked(value)) or "" for value in row]
    return "\0".join(texts).encode("utf-8", "surrogateescape")


def connect(file: Path) -> sqlite3.Connection:
    """Open an existing database."""
    connection = sqlite3.connect(
        f"{file.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
    )
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    return connection


def _add(records: _Records, table: str, record: dict[str, Any]) -> None:
    run_id, asset_key = record.get("run_id"), record.get("asset_key")
    if run_id:
        records.runs.add(run_id)
    if asset_key and (not run_id or table in _OF_ASSETS):
        records.assets.add(asset_key)
    elif table == "job_ticks":
        records.ticks.add((record["job_origin_id"], record["selector_id"]))
    elif not run_id:
        records.others.add(table)


def _delete(instance: DagsterInstance, records: _Records) -> int:
    """Delete records; return how many runs are not finished."""
    alive = 0
    for run_id in sorted(records.runs):
        run = instance.get_run_by_id(run_id)
        if run is not None and not run.is_finished:
            alive += 1
        else:
            instance.delete_run(run_id)
    keys = [AssetKey.from_db_string(key) for key in sorted(records.assets)]
    instance.wipe_assets([key for key in keys if key is not None])
    now = datetime.now(UTC).timestamp()
    for origin_id, selector_id in sorted(records.ticks):
        instance.purge_ticks(origin_id, selector_id, before=now)
    return alive
