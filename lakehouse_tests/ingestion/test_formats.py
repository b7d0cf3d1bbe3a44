"""Files other than CSV: each loads with the right values, or is rejected with a reason."""

import gzip
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
import zstandard
from pyarrow import parquet

from lakehouse.errors import DeclarationError, FileRejected
from lakehouse.ingestion.found_rows import find_rows
from lakehouse.ingestion.readers.arrow_types import declared_type
from lakehouse.ingestion.readers.file_formats import READERS, open_reader, write_without_rows
from lakehouse.ingestion.suppressed_rows import SuppressedRows
from lakehouse.tables.feed import FORMATS, Feed, FeedColumn, uncompressed

pytestmark = pytest.mark.unit
Column = FeedColumn | str
ID = FeedColumn("id", type="bigint")
_RECORDS = [{"id": number, "name": f"n{number}"} for number in range(1, 4)]
_AVRO = {
    "type": "record",
    "name": "row",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}],
}
LINES = b'{"id":1,"name":"n1"}\n{"id":2,"name":"n2"}\n\n{"name":"n3","id":3}'
ARRAY = b'\xef\xbb\xbf[{"id":1,"name":"n1"} ,\n{"id":2,"name":"n2"},{"id":3,"name":"n3"}]\n'


def read(file_format: str, content: bytes, columns: Any = ("id", "name"), **feed: Any) -> Any:
    declared = Feed("x", columns, "bronze.x", formats=[file_format], **feed)
    reader = open_reader(declared, file_format, io.BytesIO(content), use_threads=True)
    return [row for batch in reader.batches() for row in batch.to_pylist()]


def rejection(file_format: str, content: bytes, columns: Any = ("id",), **feed: Any) -> str:
    with pytest.raises(FileRejected) as rejected:
        read(file_format, content, columns, **feed)
    return str(rejected.value)


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    target = io.BytesIO()
    parquet.write_table(table, target, **options)
    return target.getvalue()


def avro_bytes(schema: Any, records: list[Any], codec: str = "null") -> bytes:
    target = io.BytesIO()
    fastavro.writer(target, schema, records, codec=codec, sync_marker=b"S" * 16)
    return target.getvalue()


FILES = {
    "jsonl": LINES,
    "json": ARRAY,
    "jsonl.gz": gzip.compress(LINES),
    "json.zst": zstandard.compress(ARRAY),
    "parquet": parquet_bytes(pa.Table.from_pylist(_RECORDS), row_group_size=2),
    "avro": avro_bytes(_AVRO, _RECORDS, "deflate"),
    # As Spark writes it.
    "avro of snappy": avro_bytes(_AVRO, _RECORDS, "snappy"),
}


def format_of(name: str) -> str:
    return name.partition(" ")[0]


@pytest.mark.parametrize("name", FILES)
def test_each_format_gives_the_same_rows(name: str) -> None:
    assert read(format_of(name), FILES[name], [ID, "name"]) == _RECORDS
    assert [row["id"] for row in read(format_of(name), FILES[name])] == ["1", "2", "3"]


@pytest.mark.parametrize("name", FILES)
def test_rows_are_left_out_of_each_format(name: str) -> None:
    target = io.BytesIO()
    write_without_rows(format_of(name), io.BytesIO(FILES[name]), {2}, target)
    assert read(format_of(name), target.getvalue(), [ID, "name"]) == [_RECORDS[0], _RECORDS[2]]


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_cut_off_is_rejected(name: str) -> None:
    assert rejection(format_of(name), FILES[name][:-5], ["id", "name"])


def test_each_format_has_a_reader() -> None:
    assert {uncompressed(name) for name in FORMATS} == set(READERS)


def test_json_text_keeps_what_is_written() -> None:
    content = '{"id":1.50}\n{"id":"007"}\n{"id":true}\n{"id":{"b":[1.0,"é"]}}\n{"id":null}'
    values = [row["id"] for row in read("jsonl", content.encode(), ["id"])]
    assert values == ["1.50", "007", "true", '{"b":[1.0,"é"]}', None]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "an empty file"),
        (b'[{"id":1},]', "not valid JSON: found no JSON at row 2"),
        (b'[{"id":1}] x', "not valid JSON: found text after the array"),
        (b'{"id":1}\n{"id":', "not valid JSON: found text that is no JSON, or is cut off"),
        (b'{"id":1}\n3', "not valid JSON: found a value that is no object at row 2"),
        (b'{"id":1,"id":2}', "not valid JSON: found an object that has a key twice"),
        (b'{"id":' + b"[" * 100_000, "not valid JSON: found values nested too deeply"),
        (b'{"id":"\xff"}', "not UTF-8"),
        (b'{"id":"\\ud800"}', "a value that does not fit"),
        (b'{"x":1}', "no declared column"),
        (b'{"id":1}\n{"id":2,"z":3}', "unknown column 'z'"),
    ],
)
def test_wrong_json_is_rejected(content: bytes, reason: str) -> None:
    assert rejection("json", content).startswith(reason)


def test_a_key_may_be_missing_in_some_objects_and_not_in_all() -> None:
    assert read("jsonl", b'{"id":1}\n{"id":2,"name":"a"}')[0] == {"id": "1", "name": None}
    assert rejection("jsonl", b'{"id":1}', ["id", "name"]).startswith("missing column 'name'")
    assert read("json", b"[]") == []


TYPED: list[Column] = [
    ID,
    *(
        FeedColumn(name, type=of_type, optional=True)
        for name, of_type in {
            "at": "timestamp",
            "day": "date",
            "d": "decimal(5,2)",
            "s": "struct<a:int,b:array<string>>",
            "m": "map<string,double>",
        }.items()
    ),
]


def test_json_values_have_the_declared_types() -> None:
    content = (
        b'{"id":17.0,"at":"2026-03-28T05:00Z","s":{"a":1,"b":["x",2]},"m":{"k":1},"d":1.5,'
        b'"day":"2026-01-01"}'
    )
    (row,) = read("jsonl", content, TYPED)
    assert row == {
        "id": 17,
        "at": datetime(2026, 3, 28, 5, tzinfo=UTC),
        "day": date(2026, 1, 1),
        "d": Decimal("1.50"),
        "s": {"a": 1, "b": ["x", "2"]},
        "m": [("k", 1.0)],
    }


@pytest.mark.parametrize(
    "value",
    [
        b'"id":1.5',
        b'"id":"1"',
        b'"id":99999999999999999999',
        b'"id":1e999999999999999999',
        b'"d":1.005',
        b'"d":1e-999999999',
        b'"at":5',
        b'"at":"9999-12-31T23:59:59-05:00"',
        b'"day":"2026-02-30"',
        b'"s":[]',
        pytest.param(b'"s":{"b":[' + b"[" * 700 + b"]" * 700 + b"]}", id="deep"),
        b'"s":{"c":1}',
    ],
)
def test_a_json_value_that_does_not_fit_is_rejected_with_its_row(value: bytes) -> None:
    content = b'{"id":1}\n{"id":2}\n{' + value + b"}"
    message = rejection("jsonl", content, TYPED)
    assert message.startswith("a value that does not fit")
    assert "in row 3" in message


NAIVE = datetime(2026, 7, 1, 12)
DAYS = pa.list_(pa.date32())


@pytest.mark.parametrize(
    ("values", "declared", "expected"),
    [
        (pa.array([2**63], pa.uint64()), "decimal(20,0)", Decimal(2**63)),
        (pa.array([7], pa.uint16()), "int", 7),
        (pa.array(["a"]).dictionary_encode(), "string", "a"),
        (pa.array([NAIVE], pa.timestamp("ns")), "timestamp", NAIVE.replace(tzinfo=UTC)),
        (pa.array([1.5], pa.float16()), "float", 1.5),
        (pa.array([b"ab"], pa.binary(2)), "binary", b"ab"),
        (pa.array([{"a": [1]}]), "struct<a:array<bigint>>", {"a": [1]}),
        (pa.array([Decimal("1.5")], pa.decimal256(40, 2)), "string", "1.50"),
        (pa.array([None], pa.null()), "string", None),
        (pa.array([date(2026, 1, 1)], pa.date64()), "date", date(2026, 1, 1)),
    ],
)
def test_parquet_values_have_the_type_of_the_file(values, declared, expected) -> None:
    assert declared_type(values.type) == declared
    content = parquet_bytes(pa.table({"v": values}))
    assert read("parquet", content, [FeedColumn("v", type=declared)]) == [{"v": expected}]


def test_int96_is_read_as_microseconds() -> None:
    table = pa.table({"v": pa.array([NAIVE], pa.timestamp("ns"))})
    content = parquet_bytes(table, use_deprecated_int96_timestamps=True)
    zone = read("parquet", content, [FeedColumn("v", type="timestamp")], time_zone="Asia/Tokyo")
    assert zone == [{"v": datetime(2026, 7, 1, 3, tzinfo=UTC)}]


@pytest.mark.parametrize(
    ("values", "declared", "reason"),
    [
        (pa.array([1, 2**63], pa.uint64()), "bigint", "a value that does not fit"),
        (pa.array([1.0, 1.005]), "decimal(10,2)", "a value that does not fit"),
        (pa.array([0.5, 0.1]), "float", "a value that does not fit"),
        (pa.array([0, 1], pa.timestamp("ns")), "timestamp", "a value that does not fit"),
        (pa.array([0, 2**58], pa.timestamp("us")), "timestamp", "a value that does not fit"),
        (pa.array([b"a", b"\xff"]), "string", "a value that does not fit"),
        (pa.array([b"a", b"\xff"]).view(pa.string()), "string", "a value that does not fit"),
        (pa.array([[0], [10**9]], DAYS), "string", "a value that does not fit"),
        (pa.array(["1", "2"]), "bigint", "another type"),
        (pa.array([True, False]), "int", "another type"),
        (pa.array([1, 2]), "timestamp", "another type"),
        (pa.array([{"a": 1, "b": 2}]), "struct<a:bigint>", "another type"),
    ],
)
def test_parquet_values_are_never_changed_silently(values, declared, reason) -> None:
    content = parquet_bytes(pa.table({"v": values}))
    message = rejection("parquet", content, [FeedColumn("v", type=declared)])
    assert message.startswith(reason)
    assert ("in row 2" in message) == (reason != "another type")


def test_parquet_of_no_rows_and_of_empty_row_groups_is_read() -> None:
    schema, target = pa.schema([("v", pa.int64())]), io.BytesIO()
    with parquet.ParquetWriter(target, schema) as writer:
        writer.write_table(schema.empty_table())
        writer.write_table(pa.table({"v": [1]}))
        writer.write_table(schema.empty_table())
    column = [FeedColumn("v", type="bigint")]
    assert read("parquet", target.getvalue(), column) == [{"v": 1}]
    assert read("parquet", parquet_bytes(schema.empty_table()), column) == []


def test_names_that_differ_in_case_are_rejected_or_ignored() -> None:
    content = parquet_bytes(pa.table({"v": [1], "V": [2]}))
    column = [FeedColumn("v", type="bigint")]
    assert rejection("parquet", content, column).startswith("unknown column 'V'")
    assert read("parquet", content, column, on_new_column="ignore") == [{"v": 1}]


def test_avro_values_have_the_type_of_the_file() -> None:
    fields = {
        "at": {"type": "long", "logicalType": "timestamp-millis"},
        "d": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
        "e": {"type": "enum", "name": "e", "symbols": ["A", "B"]},
        "m": {"type": "map", "values": ["null", "int"]},
        "u": ["null", "int", "string"],
    }
    parts = [{"name": name, "type": of_type} for name, of_type in fields.items()]
    at = datetime(2026, 1, 1, tzinfo=UTC)
    row = {"at": at, "d": Decimal("1.50"), "e": "B", "m": {"k": 1}, "u": 7}
    content = avro_bytes({"type": "record", "name": "row", "fields": parts}, [row])
    types = {"at": "timestamp", "d": "decimal(5,2)", "m": "map<string,int>"}
    columns = [FeedColumn(name, type=types.get(name, "string")) for name in fields]
    assert read("avro", content, columns) == [row | {"m": [("k", 1)], "u": "7"}]


def test_types_are_checked_where_they_are_declared() -> None:
    with pytest.raises(DeclarationError, match="CSV files contain text"):
        Feed("x", [ID], "bronze.x")
    nested = FeedColumn("who", type="array<string>", personal=True)
    with pytest.raises(DeclarationError, match="expected a type without parts"):
        Feed("x", [nested], "bronze.x", formats="jsonl")


@dataclass(frozen=True)
class Erased:
    key: bytes | None = None
    erased_at: Mapping[bytes, datetime] = field(default_factory=dict)

    def erasure_time(self, names: Iterable[str], value: str) -> datetime | None:
        assert "id" in names
        return datetime(2026, 7, 1, tzinfo=UTC) if value == "2" else None


PEOPLE = {
    "jsonl": b'{"id":1}\n{"id":2,"at":"2026-06-30T00:00Z"}\n{"id":2,"at":"2026-07-02T00:00Z"}',
    "parquet": parquet_bytes(
        pa.table(
            {
                "id": [1, 2, 2],
                "at": pa.array([None, datetime(2026, 6, 30), datetime(2026, 7, 2)]),
            }
        )
    ),
}


@pytest.mark.parametrize("file_format", PEOPLE)
def test_rows_of_erased_people_are_found_by_typed_columns(file_format: str) -> None:
    at = FeedColumn("at", type="timestamp", optional=True)
    feed = Feed("x", [ID, at], "bronze.x", formats=file_format, subject="id", moment="at")
    content, gone = PEOPLE[file_format], SuppressedRows(feed, Erased(), {"id"})
    found = find_rows(feed, f"x.{file_format}", lambda: io.BytesIO(content), gone)
    assert (found.rows, found.positions, found.problem) == (3, (2,), "")


def test_a_file_that_cannot_be_searched_is_reported() -> None:
    feed = Feed("x", ["id"], "bronze.x", formats="parquet", subject="id")
    content = FILES["parquet"][:-5]
    found = find_rows(
        feed, "x.parquet", lambda: io.BytesIO(content), SuppressedRows(feed, Erased(), {"id"})
    )
    assert found.problem.startswith("it cannot be read as parquet")
