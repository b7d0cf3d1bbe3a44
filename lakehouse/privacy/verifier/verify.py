"""The proof that people are erased: a search, and a control that must find a generated value."""

import gzip
import json
import secrets
import sqlite3
import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from lakehouse.privacy.verifier.columns import HeldColumns
from lakehouse.privacy.verifier.report import ControlResult, Method, Report
from lakehouse.privacy.verifier.roots import FolderRoot, Root
from lakehouse.privacy.verifier.search import search, search_hmacs
from lakehouse.tables.person import Person, person_hmac

_ID = "customer_id"
_EMAIL = "customer_email"
_COLUMNS = HeldColumns(
    ("control",), {_ID: frozenset()}, {_EMAIL: frozenset()}, {1: _ID, 2: _EMAIL}
)


def verify(
    roots: Sequence[Root],
    people: Sequence[Person],
    columns: Sequence[HeldColumns],
    remaining_values: Iterable[str] = (),
) -> Report:
    """Search for people by their values, in decoded columns and in all bytes.

    :param columns: of all tables and feeds with data subjects.
    :param remaining_values: personal values of people who remain, which explain a hit.
    """
    report = search(roots, people, columns, remaining_values)
    return replace(report, control=run_control("values"))


def verify_by_hmac(
    roots: Sequence[Root], key: bytes, hmacs: Sequence[str], columns: Sequence[HeldColumns]
) -> Report:
    """Search for people by the HMACs of their values, in the declared columns only.

    :param hmacs: `person_hmac` of each value, in hexadecimal digits.
    """
    report = search_hmacs(roots, key, hmacs, columns)
    return replace(report, control=run_control("hmacs"))


def run_control(method: Method) -> ControlResult:
    """Search for a generated person in a file of each format; all must be found."""
    person_id = str(1_000_000 + secrets.randbelow(8_000_000))
    email = f"é{secrets.token_hex(12)}@control.invalid"
    with tempfile.TemporaryDirectory(prefix="lakehouse-control-") as folder:
        for name, write in _SAMPLES.items():
            file = Path(folder, "control", name)
            file.parent.mkdir(exist_ok=True)
            write(file, {_ID: person_id, _EMAIL: email})
        roots = [FolderRoot(Path(folder))]
        if method == "values":
            personal = {_EMAIL: frozenset({email})}
            people = [Person(_ID, frozenset({person_id}), personal)]
            report = search(roots, people, [_COLUMNS])
        else:
            key = secrets.token_bytes(32)
            hmacs = [person_hmac(key, _ID, person_id), person_hmac(key, _EMAIL, email)]
            report = search_hmacs(roots, key, hmacs, [_COLUMNS])
    kinds = {(Path(finding.file).name, finding.kind) for finding in report.findings}
    missed = [name for name in _SAMPLES if not _is_found(name, kinds, method)]
    return ControlResult(tuple(name for name in _SAMPLES if name not in missed), tuple(missed))


def _is_found(name: str, kinds: Collection[tuple[str, str]], method: Method) -> bool:
    if name == "bytes.log":
        # Without a column, neither a short id nor a hash can be recognized.
        return method == "hmacs" or (name, "personal value") in kinds
    return {(name, "id"), (name, "personal value")} <= set(kinds)


_Row = dict[str, str]


def _write_database(file: Path, row: _Row) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"CREATE TABLE control ({_ID} INTEGER, {_EMAIL} TEXT)")
        connection.execute("INSERT INTO control VALUES (?, ?)", tuple(row.values()))
        connection.commit()


def _write_avro(file: Path, row: _Row) -> None:
    fields = [{"name": f"_{key}", "type": "string", "field-id": key} for key in (1, 2)]
    schema = {"type": "record", "name": "control", "fields": fields}
    record = {"_1": row[_ID], "_2": row[_EMAIL]}
    with file.open("wb") as target:
        fastavro.writer(target, schema, [record], codec="deflate")


def _columns(row: _Row, id_key: str) -> pa.Table:
    """Return the row with other names, so that its field ids identify the columns."""
    fields: list[pa.Field[Any]] = [
        pa.field("_1", pa.int64(), metadata={id_key: "1"}),
        pa.field("_2", pa.string(), metadata={id_key: "2"}),
    ]
    arrays: list[pa.Array[Any]] = [pa.array([int(row[_ID])]), pa.array([row[_EMAIL]])]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


_SAMPLES: dict[str, Callable[[Path, _Row], object]] = {
    "bytes.log": lambda file, row: file.write_text(row[_EMAIL], encoding="utf-8"),
    "csv.csv.gz": lambda file, row: file.write_bytes(
        gzip.compress("\n".join([",".join(row), ",".join(row.values())]).encode())
    ),
    "json.json": lambda file, row: file.write_text(json.dumps([row]), encoding="utf-8"),
    "parquet.parquet": lambda file, row: pq.write_table(
        _columns(row, "PARQUET:field_id"), file, compression="zstd", write_statistics=False
    ),
    "orc.orc": lambda file, row: orc.write_table(
        pa.Table.from_pydict({_ID: [int(row[_ID])], _EMAIL: [row[_EMAIL]]}),
        file,
        compression="ZSTD",
    ),
    "avro.avro": _write_avro,
    "sqlite.db": _write_database,
}
