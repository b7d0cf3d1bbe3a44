"""Where a made-up person is planted in a scratch home: a plant for each way in which a class of
place may have somebody.
"""

import gzip
import json
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse.privacy.verifier import places
from lakehouse.privacy.verifier.control.iceberg_plants import (
    plant_manifest,
    plant_manifest_list,
    plant_metadata,
    plant_statistics,
)
from lakehouse.privacy.verifier.control.planted_person import PERSONAL, SUBJECT, PlantedPerson

Plant = Callable[[Path, PlantedPerson], Path]
"""Writes below a home, and returns the file that has to be found."""

FIELD_ID = b"PARQUET:field_id"
_HEADER = f"{SUBJECT},{PERSONAL}\n"


def _file(home: Path, key: str) -> Path:
    file = home / key
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def _parquet(key: str) -> Plant:
    """Plant a compressed page of Parquet, in which nobody is as bytes."""

    def plant(home: Path, person: PlantedPerson) -> Path:
        file = _file(home, key)
        table = pa.table({SUBJECT: [1, person.small_id], PERSONAL: ["", person.email]})
        pq.write_table(table, file, compression="zstd", write_statistics=False)
        return file

    return plant


def _small_id(home: Path, person: PlantedPerson) -> Path:
    file = _file(home, "warehouse/control/data/small.parquet")
    pq.write_table(pa.table({SUBJECT: [1, person.small_id]}), file, compression="zstd")
    return file


def _csv(key: str) -> Plant:
    def plant(home: Path, person: PlantedPerson) -> Path:
        file = _file(home, key)
        file.write_text(f"{_HEADER}{person.long_id},{person.email}\n", encoding="utf-8")
        return file

    return plant


def _small_id_in_csv(home: Path, person: PlantedPerson) -> Path:
    file = _file(home, "inbox/control/small.csv")
    file.write_text(f"{_HEADER} +00{person.small_id} ,\n", encoding="utf-8")
    return file


def _csv_gz(home: Path, person: PlantedPerson) -> Path:
    file = _file(home, "archive/control/2024-01-01/a.csv.gz")
    with gzip.open(file, "wt", encoding="utf-8") as text:
        text.write(f"{_HEADER}{person.small_id},\n")
    return file


def _json(key: str) -> Plant:
    def plant(home: Path, person: PlantedPerson) -> Path:
        file = _file(home, key)
        file.write_text(json.dumps({"text": f"see {person.email}"}) + "\n", encoding="utf-8")
        return file

    return plant


def _text(key: str, encoding: str = "utf-8") -> Plant:
    def plant(home: Path, person: PlantedPerson) -> Path:
        file = _file(home, key)
        file.write_text(f"failed for {person.email}\n", encoding=encoding)
        return file

    return plant


def _database(key: str) -> Plant:
    """Plant a row in which JSON is compressed."""

    def plant(home: Path, person: PlantedPerson) -> Path:
        file = _file(home, key)
        content = zlib.compress(json.dumps({"text": person.email}).encode())
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("CREATE TABLE bodies (body BLOB)")
            connection.execute("INSERT INTO bodies VALUES (?)", [content])
            connection.commit()
        return file

    return plant


def _deleted_row(key: str) -> Plant:
    """Plant a row that was deleted, and is in a page that is free."""

    def plant(home: Path, person: PlantedPerson) -> Path:
        file = _file(home, key)
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA secure_delete = OFF")
            connection.execute("CREATE TABLE deleted (text TEXT)")
            connection.execute("INSERT INTO deleted VALUES (?)", [person.email])
            connection.commit()
            connection.execute("DELETE FROM deleted")
            connection.commit()
        return file

    return plant


def _log_of_changes(key: str) -> Plant:
    """Plant a row that is in the log beside a database, and not in the database."""

    def plant(home: Path, person: PlantedPerson) -> Path:
        file = _file(home, key)
        source = file.with_name("source.db")
        with closing(sqlite3.connect(source)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE logged (text TEXT)")
            connection.execute("INSERT INTO logged VALUES (?)", [person.email])
            connection.commit()
            # Once the connection is closed there is no log any more.
            log = source.with_name(f"{source.name}-wal").read_bytes()
        source.unlink()
        wal = file.with_name(f"{file.name}-wal")
        wal.write_bytes(log)
        return wal

    return plant


def _spilled(home: Path, person: PlantedPerson) -> Path:
    """Plant what Spark spills: blocks of lz4-java.

    Of what was there before they keep where it was, so that the value is nowhere as bytes.
    """
    file = _file(home, "tmp/spark/blockmgr-1/0c/temp_shuffle_1")
    begin, end = person.email[:12], person.email[12:]
    content = f"{begin} {end} {begin}{end} {'-' * 64}".encode()
    packed = pa.compress(content, "lz4_raw", asbytes=True)
    sizes = len(packed).to_bytes(4, "little") + len(content).to_bytes(4, "little")
    file.write_bytes(b"LZ4Block\x26" + sizes + bytes(4) + packed)
    return file


def _id_in_json(home: Path, person: PlantedPerson) -> Path:
    file = _file(home, "rejected/control/ids.csv.reason.json")
    file.write_text(json.dumps({"rows": [{SUBJECT: person.small_id}]}), encoding="utf-8")
    return file


def plant_column(
    home: Path, folder: str, column: "pa.Field[Any]", person: PlantedPerson
) -> str | None:
    """Plant a person in a data file that has one column of a table; return the key of the file,
    or None for a type that identifies no one, such as boolean.
    """
    value = _typed(column.type, person)
    if value is None:
        return None
    key = f"{folder}/data/control-{int((column.metadata or {})[FIELD_ID])}.parquet"
    rows = {column.name: pa.array([None, value], column.type)}
    schema = pa.schema([column.with_nullable(True)])
    pq.write_table(pa.table(rows, schema), _file(home, key))
    return key


def _typed(kind: Any, person: PlantedPerson) -> Any:
    types = pa.types
    if types.is_struct(kind):
        return {field.name: _typed(field.type, person) for field in kind}
    if types.is_map(kind):
        return [(_typed(kind.key_type, person), _typed(kind.item_type, person))]
    if types.is_list(kind) or types.is_large_list(kind):
        return [_typed(kind.value_type, person)]
    if types.is_string(kind) or types.is_large_string(kind):
        return person.email
    if types.is_date(kind):
        return person.born.date()
    if types.is_timestamp(kind):
        return person.born
    if types.is_decimal(kind):
        fits = person.small_id < 10 ** (kind.precision - kind.scale)
        return Decimal(person.small_id) if fits else None
    return person.small_id if types.is_integer(kind) or types.is_floating(kind) else None


PLANTS: dict[str, tuple[Plant, ...]] = {
    places.DATA_FILE: (_parquet("warehouse/control/data/a.parquet"), _small_id),
    places.QUARANTINE: (_parquet("warehouse/control/t_quarantine/data/a.parquet"),),
    places.MANIFEST: (plant_manifest,),
    places.MANIFEST_LIST: (plant_manifest_list,),
    places.METADATA: (plant_metadata,),
    places.STATISTICS: (plant_statistics,),
    places.DELIVERED: (_csv("inbox/control/a.csv"), _small_id_in_csv),
    places.ARCHIVE: (_csv("archive/control/2024-01-01/a.csv"), _csv_gz),
    places.REJECTED: (_csv("rejected/control/a.csv"),),
    places.REASON: (_json("rejected/control/a.csv.reason.json"), _id_in_json),
    places.STAGING: (_parquet("staging/control/a.parquet"),),
    places.CATALOG: (_deleted_row("catalog.db"),),
    places.DAGSTER: (
        _database("dagster/history/runs/index.db"),
        _deleted_row("dagster/history/runs/deleted.db"),
        _log_of_changes("dagster/history/runs.db"),
    ),
    places.COMPUTE_LOG: (_text("dagster/storage/run/compute_logs/a.err"),),
    places.ALERTS: (_json("alerts.jsonl"), _json("alerts/state.json")),
    places.SPARK_LOG: (_text("logs/spark.log"),),
    places.TEMPORARY: (_spilled,),
    places.PRIVACY: (_json("privacy/requests/control.json"),),
    places.OTHER: (_text("notes.txt"), _text("notes-of-windows.txt", "utf-16")),
}
"""By class of place."""

COLUMN_PLANTS: dict[str, tuple[Plant, ...]] = {
    places.DATA_FILE: PLANTS[places.DATA_FILE],
    places.DELIVERED: (_small_id_in_csv,),
    places.ARCHIVE: (_csv_gz,),
    places.MANIFEST: (plant_manifest,),
    places.REASON: (_id_in_json,),
}
"""Those in which declared columns have the person."""
