"""Records of JSON, CSV and SQLite: declared fields are compared, and texts searched."""

import csv
import gzip
import json
import shutil
import sqlite3
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from lakehouse.iceberg.erasure.arrow_ids import text_of
from lakehouse.privacy.verifier.file_part import FilePart
from lakehouse.tables.quoting import identifier

MAX_JSON_BYTES = 64 * 1024 * 1024
"""Of one JSON value; a larger file must consist of lines."""
_BATCH_VALUES = 100_000
_BATCH_BYTES = 1024 * 1024


class RecordFields:
    """Collects declared fields and texts of records, and searches them in batches."""

    def __init__(self, part: FilePart) -> None:
        self._part = part
        self._fields: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
        self._texts: list[bytes] = []
        self._values = self._bytes = 0

    def add(self, value: Any, path: tuple[str, ...] = ()) -> None:
        """Add the declared fields of a value."""
        if isinstance(value, dict):
            for name, inner in value.items():
                # The rest of a path can contain values.
                is_declared = str(name).strip().lower() in self._part.names
                self.add(inner, (*path, str(name)) if is_declared else path)
        elif isinstance(value, list | tuple):
            for inner in value:
                self.add(inner, path)
        elif value is not None and path:
            text = text_of(value) or ""
            self._fields[path].add(text.encode("utf-8", "replace").decode())
            self._values += 1
            if self._values >= _BATCH_VALUES:
                self.flush()

    def add_row(self, row: Mapping[str, Any]) -> None:
        """Add a row: its declared columns, and all its texts and integers."""
        values = {name: unpacked(value) for name, value in row.items()}
        self.add(values)
        for value in values.values():
            if isinstance(value, str | bytes | int):
                text = (
                    value if isinstance(value, bytes) else str(value).encode(errors="replace")
                )
                self._texts.append(text)
                self._bytes += len(text)
        if self._bytes >= _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Search what was collected."""
        self._part.search_bytes(b"\0".join(self._texts))
        for path, values in self._fields.items():
            self._part.compare(path, pa.array(sorted(values), pa.string()))
        self._texts.clear()
        self._fields.clear()
        self._values = self._bytes = 0


def read_json(file: BinaryIO, size_bytes: int, part: FilePart) -> None:
    """Compare the declared fields of a delivered JSON file, or of lines of JSON.

    :raises ValueError: when a value is too long.
    """
    fields = RecordFields(part)
    text = TextIOWrapper(file, "utf-8-sig", errors="replace")
    try:
        content = text.read() if size_bytes <= MAX_JSON_BYTES else ""
        value = _parsed(content)
        fields.add(value)
        whole = iter(lambda: text.readline(MAX_JSON_BYTES + 1), "")
        lines = content.split("\n") if content and value is None else whole
        for line in lines:
            if len(line) > MAX_JSON_BYTES:
                raise ValueError(f"a line has more than {MAX_JSON_BYTES} characters")
            # None for the incomplete line of a killed process, whose bytes were searched.
            fields.add(_parsed(line))
        fields.flush()
    finally:
        # Otherwise it closes the file.
        text.detach()


def _parsed(text: str) -> Any:
    """Return the value of a JSON text; None if it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


_DELIMITERS = ",;\t|"
_MAX_FIELD_BYTES = 16 * 1024 * 1024


def read_csv(file: BinaryIO, size_bytes: int, part: FilePart) -> None:  # noqa: ARG001
    """Compare the declared columns that the header names.

    :raises csv.Error: when it cannot be read as rows.
    """
    csv.field_size_limit(_MAX_FIELD_BYTES)
    text = TextIOWrapper(file, "utf-8-sig", errors="replace", newline="")
    try:
        first_line = text.readline()
        text.seek(0)
        delimiter = max(_DELIMITERS, key=first_line.count)
        header = next(csv.reader(text, delimiter=delimiter), [])
        names = [name.strip() for name in header]
        declared = {number: name for number, name in enumerate(names) if part.declared([name])}
        fields = RecordFields(part)
        for row in csv.reader(text, delimiter=delimiter) if declared else ():
            for number, name in declared.items():
                if number < len(row):
                    fields.add({name: row[number]})
        fields.flush()
    finally:
        # Otherwise it closes the file.
        text.detach()


def read_sqlite(file: BinaryIO, size_bytes: int, part: FilePart) -> None:  # noqa: ARG001
    """Search the rows of all tables, with those that are only in the write-ahead log.

    :raises sqlite3.Error: when it is damaged.
    """
    with tempfile.TemporaryDirectory(prefix="lakehouse-verify-") as folder:
        database = Path(folder, "copy.db")
        _copy_database(file, part, database)
        with closing(sqlite3.connect(database)) as connection:
            connection.text_factory = bytes
            # Without a name, no copy is left if the process is killed.
            connection.execute("PRAGMA journal_mode = DELETE").fetchall()
            database.unlink()
            query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            for (name,) in connection.execute(query).fetchall():
                _search_table(connection, name.decode(), part)


def _copy_database(file: BinaryIO, part: FilePart, target: Path) -> None:
    log = part.path.with_name(f"{part.path.name}-wal") if part.path else None
    if part.path and log and log.exists():
        address = f"{part.path.absolute().as_uri()}?mode=ro"
        with (
            closing(sqlite3.connect(address, uri=True)) as source,
            closing(sqlite3.connect(target)) as copied,
        ):
            source.backup(copied)
        return
    file.seek(0)
    with target.open("wb") as copied_file:
        shutil.copyfileobj(file, copied_file)


def _search_table(connection: sqlite3.Connection, name: str, part: FilePart) -> None:
    fields = RecordFields(part.within(f"table {name}"))
    cursor = connection.execute(f"SELECT * FROM {identifier(name)}")
    columns = [column[0] for column in cursor.description]
    for row in cursor:
        fields.add_row(dict(zip(columns, row, strict=True)))
    fields.flush()


def unpacked(value: Any) -> Any:
    """Return a value without compression, which Dagster applies to snapshots."""
    if not isinstance(value, bytes):
        return value
    try:
        if value[:1] == b"\x78":
            return zlib.decompress(value)
        return gzip.decompress(value) if value.startswith(b"\x1f\x8b") else value
    except (OSError, EOFError, zlib.error):
        return value
