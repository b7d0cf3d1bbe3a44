"""A write that is only looked at: staged and audited as any, and nothing of it stays."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from lakehouse.errors import PendingChanges
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_result import Published, Refused
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.iceberg.write.write_preview import preview
from lakehouse.tables.table import IcebergTable
from lakehouse_tests.conftest import whatever_the_catalog
from lakehouse_tests.iceberg.declarations import (
    DAYS,
    MONDAY,
    PEOPLE,
    TUESDAY,
    content,
    days,
    put,
    refs,
    rows_of,
    run_of,
)

pytestmark = [pytest.mark.spark, whatever_the_catalog]

Compute = Callable[..., DataFrame]


def people(engine: Engine, *rows: tuple[str, str]) -> Compute:
    return rows_of(
        engine, "id string, name string, marks map<string,int>", [(*row, None) for row in rows]
    )


def previewed(
    engine: Engine, table: IcebergTable, compute: Compute, run: Run | None = None
) -> tuple[Any, list[tuple[Any, ...]]]:
    """Preview a write; return what came of it, and the rows of its branch."""
    seen: list[tuple[Any, ...]] = []

    def look(branch: str) -> None:
        name = engine.catalog.sql_name(table.name, branch=branch)
        seen.extend(tuple(row) for row in engine.spark.table(name).collect())

    return preview(engine, table, compute, {}, run or Run(), look), seen


def test_the_rows_are_seen_and_readers_see_what_they_saw(engine: Engine) -> None:
    run = run_of(MONDAY, TUESDAY)
    put(engine, DAYS, [(MONDAY, 1, 1)], run=run)
    before = read_history(engine, DAYS.name).main
    outcome, seen = previewed(engine, DAYS, days(engine, (MONDAY, 2, 1), (TUESDAY, 3, 2)), run)

    assert isinstance(outcome, Published)
    assert sorted(row[1] for row in seen) == [2, 3]
    assert read_history(engine, DAYS.name).main == before
    assert set(refs(engine, DAYS.name)) == {"main"}


@pytest.mark.long
def test_rejected_rows_are_counted_and_not_put_into_the_quarantine(engine: Engine) -> None:
    write(engine, PEOPLE, people(engine, ("1", "Ann")))
    outcome, seen = previewed(engine, PEOPLE, people(engine, ("2", "Bob"), ("x", "Cid")))

    assert (outcome.quarantined.rows, outcome.quarantined.new_rows) == (1, 0)
    assert sorted(row[1] for row in seen) == ["Ann", "Bob"]
    assert content(engine, PEOPLE.quarantine.name, "_row_key") == []


def test_what_would_be_blocked_is_not_kept(engine: Engine) -> None:
    write(engine, PEOPLE, people(engine, ("1", "Ann")))
    outcome, _ = previewed(engine, PEOPLE, people(engine, ("2", "nobody")))

    assert isinstance(outcome, Refused)
    assert [result.rule.name for result in outcome.reasons] == ["excluded_name"]
    assert set(refs(engine, PEOPLE.name)) == {"main"}


def test_who_interrupts_it_leaves_no_branch(engine: Engine) -> None:
    write(engine, PEOPLE, people(engine, ("1", "Ann")))

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        preview(engine, PEOPLE, people(engine, ("2", "Bob")), {}, Run(), interrupt)

    assert set(refs(engine, PEOPLE.name)) == {"main"}


def test_a_table_that_is_to_be_changed_first_is_not_changed_for_it(engine: Engine) -> None:
    with pytest.raises(PendingChanges, match=r"create the table.*lakehouse apply"):
        previewed(engine, PEOPLE, people(engine, ("2", "Bob")))

    assert not engine.catalog.has(PEOPLE.name)
