"""Refused rows that share what tells their source, or have none, stand in the quarantine each by
itself.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from pyspark.sql import DataFrame

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.inputs import incremental
from lakehouse.iceberg.rules.rows import castable, excluded
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_result import Refused
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.ingestion.delivery_decisions import publish
from lakehouse.settings import Settings
from lakehouse.tables.table import Append, Column, IcebergTable, Merge
from lakehouse_tests.iceberg.declarations import DELIVERED, content, delivery

pytestmark = pytest.mark.spark

PIECES = IcebergTable(
    name="silver.pieces",
    comment="One row for each number in a delivered row.",
    columns=[Column("id", "bigint"), *DELIVERED.columns[1:]],
    write=Merge(on=["id", "name"]),
    rules=[castable("id", "bigint")],
)
QUARANTINE = "silver.pieces_quarantine"
INPUTS = {"delivered": incremental(DELIVERED.name)}


@pytest.fixture
def delivered(filled_engine: Callable[..., Engine]) -> Engine:
    """An engine with two rows, of which the first has two pieces that are no number."""
    rows = [("1 x y", "ann"), ("2 z", "bob")]
    return filled_engine(lambda engine: write(engine, DELIVERED, delivery(engine, "a", rows)))


def pieces(delivered: DataFrame, **corrected: str) -> DataFrame:
    rows = delivered.selectExpr("explode(split(id, ' ')) AS id", *DELIVERED.column_names[1:])
    return rows.replace(corrected, subset=["id"]) if corrected else rows


def compute(
    engine: Engine, run: str = "run", table: IcebergTable = PIECES, **corrected: str
) -> None:
    """Compute the pieces of all rows; `corrected` says what some of them are now."""
    everything = Run(run, reads_everything=True)
    write(engine, table, partial(pieces, **corrected), INPUTS, everything)


def held(engine: Engine) -> list[tuple[str, int]]:
    return content(engine, QUARANTINE, "id", "_source_row")


def keys(engine: Engine) -> dict[str, str]:
    return dict(content(engine, QUARANTINE, "id", "_row_key"))


@pytest.mark.long
def test_each_rejected_piece_of_a_delivered_row_is_held(delivered: Engine) -> None:
    compute(delivered)
    assert held(delivered) == [("x", 1), ("y", 1), ("z", 2)]
    before = keys(delivered)
    compute(delivered, "again")
    assert keys(delivered) == before


@pytest.mark.long
def test_a_piece_that_is_corrected_leaves_the_other(delivered: Engine) -> None:
    compute(delivered)
    compute(delivered, "again", x="5")
    assert held(delivered) == [("y", 1), ("z", 2)]
    assert content(delivered, PIECES.name, "id") == [(1,), (2,), (5,)]
    compute(delivered, "both", x="5", y="6")
    assert held(delivered) == [("z", 2)]


def test_an_append_adds_no_piece_again_whose_neighbour_is_evaluated_again(
    delivered: Engine,
) -> None:
    table = replace(PIECES, write=Append())
    compute(delivered, table=table)
    compute(delivered, "again", table, x="5")
    assert content(delivered, PIECES.name, "id") == [(1,), (2,), (5,)]
    assert held(delivered) == [("y", 1), ("z", 2)]


def test_a_rejected_piece_stays_after_a_run_that_published_nothing(delivered: Engine) -> None:
    compute(delivered)
    for file, id_ in (("b", "w"), ("c", "3")):
        write(delivered, DELIVERED, delivery(delivered, file, [(id_, "cid")]))
        write(delivered, PIECES, pieces, INPUTS, Run(file))
    assert held(delivered) == [("w", 1), ("x", 1), ("y", 1), ("z", 2)]


@pytest.mark.long
def test_a_rejected_piece_stays_where_a_person_publishes_the_others(
    embedded_engine: Engine, settings: Settings
) -> None:
    rows = [("x y", "ann"), ("z", "bob"), ("u v w", "cat")]
    write(embedded_engine, DELIVERED, delivery(embedded_engine, "a", rows))
    compute(embedded_engine)
    rejected = [("u", 3), ("v", 3), ("w", 3), ("x", 1), ("y", 1), ("z", 2)]
    assert held(embedded_engine) == rejected
    blocked = replace(PIECES, rules=[*PIECES.rules, excluded("id", [5], on_failure="block")])

    corrected = partial(pieces, x="5", z="7", u="8")
    everything = Run("again", reads_everything=True)
    refused = write(embedded_engine, blocked, corrected, INPUTS, everything)
    assert isinstance(refused, Refused)
    publish(settings, embedded_engine, blocked, "again", by="ann", why="they are right")
    assert content(embedded_engine, PIECES.name, "id") == [(5,), (7,), (8,)]
    assert held(embedded_engine) == [("v", 3), ("w", 3), ("y", 1)]
