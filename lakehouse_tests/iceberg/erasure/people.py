"""Tables of people without Spark, and small ways to look at them."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions import EqualTo

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import ensure
from lakehouse.iceberg.metadata.commit_record import CommitProperties
from lakehouse.iceberg.metadata.referenced_files import named_files
from lakehouse.iceberg.metadata.snapshots import MAIN, read_history
from lakehouse.tables.person import Person
from lakehouse.tables.table import Append, Column, IcebergTable

ORDERS = IcebergTable(
    name="silver.orders",
    comment="What people bought.",
    columns=[
        Column("id", "bigint"),
        Column("customer_id", "bigint"),
        Column("email", "string", personal=True),
        Column("note", "string"),
        Column("day", "date"),
    ],
    write=Append(once_by=()),
    subject="customer_id",
)
DELIVERED = replace(
    ORDERS,
    name="bronze.orders",
    columns=[
        Column("customer_id", "string"),
        Column("email", "string", personal=True),
        Column("_source_file", "string"),
        Column("_source_sha256", "string"),
    ],
    write=Append(),
)
DELIVERED_ROWS = [
    (text, "x", "file", "sha")
    for text in ("7", " 7", "007", "+7\t", "\u00a07", "70", "-7", "7.0", "", None)
]
"""Six of them are of Anna."""
ANNA = Person("customer_id", frozenset({"7"}), {"email": frozenset({"anna@example.org"})})
REQUEST = "R-1"
_HERS = "anna@example.org"
NESTED: list[tuple[str, list[Any], list[Any]]] = [
    (
        "array<string>",
        [[_HERS], ["x", None, _HERS]],
        [["x"], [], [None], [f"[{_HERS}]"]],
    ),
    (
        "map<string,string>",
        [[("work", _HERS)], [(_HERS, None)], [("a", "x"), ("b", _HERS)]],
        [[("work", "x")], []],
    ),
    (
        "struct<first:string,`last one`:array<struct<of:string,n:int>>>",
        [
            {"first": _HERS, "last one": None},
            {"first": None, "last one": [None, {"of": _HERS, "n": 1}]},
        ],
        [{"first": "x", "last one": [{"of": None, "n": 7}]}, {"first": None, "last one": []}],
    ),
]
"""A type with parts; values of it that tell of Anna, and others."""


def contacts_of(column_type: str) -> IcebergTable:
    """Declare a table without a subject, whose personal column is of some type."""
    columns = [Column("email", column_type, personal=True), Column("note", "string")]
    return replace(ORDERS, name="silver.contacts", subject=None, columns=columns)


def no_spark() -> Any:
    raise AssertionError("Spark was started")


def fill(
    engine: Engine,
    table: IcebergTable,
    rows: Iterable[Sequence[Any]],
    *,
    branch: str = MAIN,
    inputs: dict[str, int] | None = None,
) -> None:
    """Append rows to a table in one file for each partition; it is made first."""
    ensure(engine, table)
    loaded = engine.catalog.load(table.name)
    schema = loaded.schema().as_arrow()
    columns = list(zip(*rows, strict=True))
    arrays = [
        pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)
    ]
    stamp = CommitProperties("write", "w", "run", inputs=inputs or {})
    loaded.append(
        pa.Table.from_arrays(arrays, schema=schema),
        snapshot_properties=stamp.to_summary(),
        branch=branch,
    )


def content(engine: Engine, table: IcebergTable, ref: str = MAIN) -> list[tuple[Any, ...]]:
    loaded = engine.catalog.load(table.name)
    snapshot_id = loaded.metadata.refs[ref].snapshot_id
    read = loaded.scan(snapshot_id=snapshot_id).to_arrow()
    return sorted((tuple(row.values()) for row in read.to_pylist()), key=repr)


def data_paths(engine: Engine, table: IcebergTable, ref: str = MAIN) -> set[str]:
    loaded = engine.catalog.load(table.name)
    snapshot_id = loaded.metadata.refs[ref].snapshot_id
    return {task.file.file_path for task in loaded.scan(snapshot_id=snapshot_id).plan_files()}


def paths_with(engine: Engine, table: IcebergTable, column: str, value: object) -> set[str]:
    """Return the paths of the data files that have rows with a value."""
    tasks = engine.catalog.load(table.name).scan(EqualTo(column, value)).plan_files()
    return {task.file.file_path for task in tasks}


def tag(engine: Engine, table: IcebergTable, name: str) -> None:
    head = read_history(engine, table.name).refs[MAIN]
    loaded = engine.catalog.load(table.name)
    loaded.manage_snapshots().create_tag(head, name, max_ref_age_ms=86_400_000).commit()


def branch_off(engine: Engine, table: IcebergTable, name: str) -> None:
    head = read_history(engine, table.name).refs[MAIN]
    engine.catalog.load(table.name).manage_snapshots().create_branch(head, name).commit()


def files_with(engine: Engine, table: IcebergTable, text: bytes) -> list[str]:
    """Return the kinds of the referenced files that contain a text, decompressed."""
    loaded = engine.catalog.load(table.name)
    kinds = []
    for file in named_files(loaded).values():
        if text in _decoded(loaded.io.new_input(file.path).open().read(), file.path):
            kinds.append(file.kind)
    return sorted(kinds)


def _decoded(content: bytes, path: str) -> bytes:
    if path.endswith(".parquet"):
        return repr(pq.read_table(pa.BufferReader(content)).to_pylist()).encode() + content
    if path.endswith(".avro"):
        return repr(list(fastavro.reader(io.BytesIO(content)))).encode()
    return content
