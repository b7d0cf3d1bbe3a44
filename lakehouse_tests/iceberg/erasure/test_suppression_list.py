"""Rows of erased people stay out of what is computed, and the key of their hashes out of plans."""

import hashlib
import hmac
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.suppression_list import (
    ErasedIds,
    FilteredRows,
    RowTimestamp,
    SuppressionList,
)
from lakehouse.iceberg.read.inputs import latest
from lakehouse.tables.person import normal_id
from lakehouse.tables.table import Column, IcebergTable, Versions
from lakehouse_tests.frames import frame_of
from lakehouse_tests.iceberg.erasure.people import ORDERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY = b"0123456789abcdef0123456789abcdef"
ERASED_AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
EARLIER, LATER = datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
TABLE = replace(
    ORDERS,
    columns=[
        Column("customer_id", "string", renamed_from=["client"]),
        Column("made_at", "timestamp"),
    ],
    versions=Versions(of=("customer_id",), newest=("made_at",)),
)


def suppressed(*ids: str, name: str = "customer_id") -> ErasedIds:
    digests = [
        hmac.new(KEY, f"{name}\0{normal_id(id_)}".encode(), hashlib.sha256).digest()
        for id_ in ids
    ]
    return ErasedIds(KEY, dict.fromkeys(digests, ERASED_AT))


def split(
    frame: "DataFrame",
    table: IcebergTable,
    ids: ErasedIds,
    *,
    created: RowTimestamp | None = None,
    names: Collection[str] = (),
) -> FilteredRows:
    timestamps = {table.name: created} if created else {}
    suppression = SuppressionList(lambda: ids, names={table.name: names}, timestamps=timestamps)
    return suppression.filter().split(table, frame)


def test_what_was_made_before_goes_and_who_comes_back_later_stays(
    embedded_engine: Engine,
) -> None:
    earlier = [(id_, EARLIER) for id_ in ("7", " +007\t", "8", None)]
    rows = [*earlier, ("7", None), ("7", LATER)]
    frame = frame_of(embedded_engine.spark, "customer_id string, made_at timestamp", rows)

    left = split(frame, TABLE, suppressed("7"))

    kept = sorted(row[0] or "" for row in left.rows.collect())
    assert kept == ["", "7", "8"]
    assert left.rows.columns == frame.columns
    assert left.suppressed is not None
    assert left.suppressed.count() == 3


def test_without_a_moment_all_rows_of_theirs_go(embedded_engine: Engine) -> None:
    frame = frame_of(embedded_engine.spark, "customer_id bigint", [(7,), (8,)])

    left = split(frame, replace(TABLE, versions=None), suppressed("7", name="client"))

    assert [row[0] for row in left.rows.collect()] == [8]


def test_executors_need_no_python(
    embedded_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = embedded_engine.sql("SELECT '7' AS customer_id")
    context = embedded_engine.spark.sparkContext
    monkeypatch.setattr(context, "pythonExec", "/no/python")

    left = split(frame, replace(TABLE, versions=None), suppressed("7"))

    assert left.rows.collect() == []


def test_no_plan_has_the_key_or_a_hash(
    embedded_engine: Engine, capsys: pytest.CaptureFixture
) -> None:
    frame = frame_of(embedded_engine.spark, "customer_id string", [("7",)])

    split(frame, TABLE, suppressed("7")).rows.explain(extended=True)

    plan = capsys.readouterr().out
    assert "customer_id" in plan
    inner = bytes(byte ^ 0x36 for byte in KEY).hex()
    digest = next(iter(suppressed("7").erased_at)).hex()
    for secret in (KEY.hex(), KEY.decode(), inner, digest):
        assert secret.lower() not in plan.lower()


def test_a_delivered_moment_is_read_in_the_zone_of_its_feed(embedded_engine: Engine) -> None:
    # Midnight in Kuala Lumpur is 16:00 UTC of the day before.
    seen = ("2026-03-01 19:59", "2026-03-01 20:01", "2026-03-01T12:01:00Z", "soon", None)
    rows = [("7", seen_at) for seen_at in seen]
    frame = frame_of(embedded_engine.spark, "customer_id string, seen_at string", rows)
    created = RowTimestamp("seen_at", "Asia/Kuala_Lumpur")

    left = split(frame, replace(TABLE, versions=None), suppressed("7"), created=created)

    kept = {row[1] for row in left.rows.collect()}
    assert kept == {"2026-03-01 20:01", "2026-03-01T12:01:00Z"}


def test_a_person_is_known_by_what_other_tables_call_them(embedded_engine: Engine) -> None:
    frame = frame_of(embedded_engine.spark, "customer_id bigint", [(7,), (8,)])

    left = split(frame, TABLE, suppressed("7", name="buyer"), names={"Buyer"})

    assert [row[0] for row in left.rows.collect()] == [8]


def test_a_function_is_given_its_inputs_without_them(embedded_engine: Engine) -> None:
    schema = "customer_id string, made_at timestamp"
    orders = frame_of(embedded_engine.spark, schema, [("7", EARLIER), ("8", EARLIER)])
    others = frame_of(embedded_engine.spark, schema, [("8", EARLIER)])
    given = {}
    inputs = {"orders": latest(TABLE.name), "others": latest(TABLE.name)}

    def compute(**frames):
        given.update(frames)
        return frames["orders"]

    filtered = SuppressionList(lambda: suppressed("7"), {TABLE.name: TABLE}).filter()
    computed = filtered.wrap(inputs, compute)(orders=orders, others=others)

    assert [row[0] for row in computed.collect()] == ["8"]
    assert given["others"] is others
    assert filtered.rows == {TABLE.name: 1}
