"""What rejections take out of a source leaves what was computed of it, where no other delivery
gives it.
"""

from dataclasses import replace
from datetime import timedelta

import pytest
from pyspark.sql import DataFrame

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.snapshot_properties import session_with
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import incremental
from lakehouse.iceberg.read.withdrawn_deliveries import RejectedDelivery
from lakehouse.iceberg.rules.evaluable_rule import EvaluatedSnapshot
from lakehouse.iceberg.rules.evaluation import evaluate_snapshot
from lakehouse.iceberg.rules.size_schema_and_freshness import fresh
from lakehouse.iceberg.values.write_result import Outcome, Published, Unchanged
from lakehouse.iceberg.write.row_versions import newest_accepted
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Append, IcebergTable, Versions
from lakehouse_tests.conftest import whatever_the_catalog
from lakehouse_tests.iceberg.declarations import DELIVERED, PEOPLE, content, delivery

pytestmark = [pytest.mark.spark, whatever_the_catalog]
INPUTS = {"delivered": incremental(DELIVERED.name)}
COPIES = IcebergTable(
    name="silver.copies",
    comment="What was delivered, once for each file.",
    columns=[*DELIVERED.columns],
    write=Append(),
)


VERSIONED = replace(
    PEOPLE,
    columns=[
        column for column in PEOPLE.columns if column.name in ("id", "name", PEOPLE.stamp)
    ],
    versions=Versions(of="name", newest="id"),
)


def newest(delivered: DataFrame) -> DataFrame:
    """Compute `silver.people`: of each name what the last file says."""
    columns = [
        "id",
        "name",
        "map('a', 1) AS marks",
        "_source_file",
        "_source_sha256",
        "_source_row",
    ]
    rank = "row_number() OVER (PARTITION BY name ORDER BY _source_file DESC) AS rank"
    return delivered.selectExpr(*columns, rank).where("rank = 1").drop("rank")


def land(engine: Engine, file: str, *rows: tuple[str | None, str | None]) -> None:
    write(engine, DELIVERED, delivery(engine, file, list(rows)))


def merge(engine: Engine) -> Outcome:
    return write(engine, PEOPLE, newest, INPUTS)


def reject(engine: Engine, file: str) -> None:
    its = RejectedDelivery(file, f"sha-{file}")
    with session_with(engine.spark, its.to_summary(by="somebody", why="why")):
        engine.sql(
            f"DELETE FROM {engine.catalog.sql_name(DELIVERED.name)} WHERE {its.deleted_by}"
        )


def standing(engine: Engine) -> list[tuple]:
    return content(engine, PEOPLE.name, "id", "name")


@pytest.mark.long
def test_what_it_alone_gave_goes_and_what_others_gave_comes_back(engine: Engine) -> None:
    land(engine, "a", ("1", "ann"), ("2", "bob"))
    merge(engine)
    land(engine, "b", ("8", "bob"), ("9", "eve"), ("x", "fay"))
    merge(engine)
    reject(engine, "b")
    done = merge(engine)
    assert isinstance(done, Published)
    assert (done.updated_rows, done.removed_rows) == (1, 1)
    assert standing(engine) == [(1, "ann"), (2, "bob")]
    assert isinstance(merge(engine), Unchanged)


def test_a_rejection_makes_no_table_fresh(engine: Engine) -> None:
    land(engine, "a", ("1", "ann"))
    land(engine, "b", ("2", "bob"))
    before = read_history(engine, DELIVERED.name)
    reject(engine, "b")

    after = read_history(engine, DELIVERED.name)

    assert len(after.log) == len(before.log) + 1
    assert after.written_at == before.written_at == before.log[-1][0]
    evaluated = EvaluatedSnapshot(
        engine, DELIVERED, after, after.main, now=before.log[-1][0] + timedelta(hours=3)
    )
    (result,) = evaluate_snapshot(evaluated, [fresh(within=timedelta(hours=2))])
    assert (result.level, result.value) == ("warns", 3.0)


@pytest.mark.long
def test_a_merged_table_keeps_the_newest_version_whatever_comes_later(engine: Engine) -> None:
    """Until its delivery is rejected: then the newest of those that are left is back."""

    def versions() -> list[tuple]:
        write(
            engine, VERSIONED, lambda delivered: newest_accepted(VERSIONED, delivered), INPUTS
        )
        return content(engine, VERSIONED.name, "id", "name")

    land(engine, "a", ("3", "ann"), ("5", "bob"))
    assert versions() == [(3, "ann"), (5, "bob")]
    land(engine, "b", ("2", "ann"), ("6", "bob"), ("1", "eve"))
    assert versions() == [(1, "eve"), (3, "ann"), (6, "bob")]
    reject(engine, "a")
    assert versions() == [(1, "eve"), (2, "ann"), (6, "bob")]


@pytest.mark.long
def test_rows_leave_a_table_that_appends_and_keeps_their_source(engine: Engine) -> None:
    land(engine, "a", ("1", "ann"))
    land(engine, "b", ("9", "eve"))
    write(engine, COPIES, lambda delivered: delivered, INPUTS)
    reject(engine, "b")
    land(engine, "c", ("3", "cat"))
    done = write(engine, COPIES, lambda delivered: delivered, INPUTS)
    assert isinstance(done, Published) and done.row_count == 2
    assert content(engine, COPIES.name, "id") == [("1",), ("3",)]
    reject(engine, "c")
    done = write(engine, COPIES, lambda delivered: delivered, INPUTS)
    assert isinstance(done, Published) and (done.deleted_rows, done.row_count) == (1, 1)
