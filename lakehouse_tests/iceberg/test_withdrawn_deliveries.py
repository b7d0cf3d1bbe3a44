"""What rejections take out of a source leaves what was computed of it, where no other delivery
gives it.
"""

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
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse_tests.conftest import whatever_the_catalog
from lakehouse_tests.iceberg.declarations import DELIVERED, PEOPLE, content, delivery

pytestmark = [pytest.mark.spark, whatever_the_catalog]
INPUTS = {"delivered": incremental(DELIVERED.name)}


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
