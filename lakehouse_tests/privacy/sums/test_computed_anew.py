"""Tables of sums are computed anew in order, each once, and no partition without need."""

from datetime import date

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.settings import Settings
from lakehouse_tests.privacy.sums.some_sums import (
    LARGE,
    ORDERS,
    PERSON,
    Node,
    SomeSums,
    node_of,
)

pytestmark = [pytest.mark.spark, pytest.mark.long]

JANUARY, NEXT, FEBRUARY = date(2024, 1, 30), date(2024, 1, 31), date(2024, 2, 2)
DAILY = node_of("gold.daily", "daily", ORDERS.name)
MONTHLY = node_of("gold.monthly", "monthly", DAILY.table.name)
REPORT = node_of("gold.report", "whole", MONTHLY.table.name)


def some_sums(engine: Engine, settings: Settings, *nodes: Node) -> SomeSums:
    """Return sums of others on all days, and of the person on one of them."""
    sums = SomeSums(engine, settings, nodes)
    others = [(8, day, "a", 1) for day in (JANUARY, NEXT, FEBRUARY)]
    sums.land([*others, (PERSON, JANUARY, "b", LARGE)])
    sums.compute()
    return sums


def partitions_of_runs(sums: SomeSums, node: Node) -> list[tuple[str, ...]]:
    """Return the partitions that each run of Dagster wrote of a table, newest first."""
    line = read_history(sums.engine, node.table.name).line
    commits = [snapshot.commit for snapshot in line if snapshot.commit]
    return [commit.partitions for commit in commits if commit.run_id]


def head(sums: SomeSums, node: Node) -> int | None:
    """Return the snapshot that readers see of a table."""
    main = read_history(sums.engine, node.table.name).main
    return main.snapshot_id if main else None


def test_sums_of_sums_are_computed_anew_and_a_second_time(
    embedded_engine: Engine, settings: Settings
) -> None:
    sums = some_sums(embedded_engine, settings, DAILY, MONTHLY, REPORT)
    rows = sums.erase()

    done = [sums.compute_anew(rows) for _ in range(2)]

    assert done == 2 * [[DAILY.table.name, MONTHLY.table.name, REPORT.table.name]]
    assert sums.everything() == sums.expected()
    assert partitions_of_runs(sums, DAILY)[0] == ("2024-01-30",)
    # The months of the days are not known.
    assert partitions_of_runs(sums, MONTHLY)[0] == ("2024-01-01", "2024-02-01")


@pytest.mark.parametrize("comes_first", ["erasure", "new rows"])
def test_readers_of_what_is_new_neither_read_it_twice_nor_miss_it(
    embedded_engine: Engine, settings: Settings, comes_first: str
) -> None:
    kinds = ("appended", "growing", "changed")
    nodes = [node_of(f"gold.{kind}", kind, ORDERS.name) for kind in kinds]
    sums = some_sums(embedded_engine, settings, *nodes)
    new = [(8, NEXT, "a", 2), (9, FEBRUARY, "c", 3)]
    if comes_first == "erasure":
        rows = sums.erase()
        sums.land(new)
    else:
        sums.land([*new, (PERSON, NEXT, "a", LARGE)])
        rows = sums.erase()

    sums.compute_anew(rows)
    sums.compute()
    read = [head(sums, node) for node in nodes]
    sums.compute()

    assert sums.everything() == sums.expected()
    assert [head(sums, node) for node in nodes] == read


def test_rows_that_a_merge_has_from_no_source_any_more_stay(
    embedded_engine: Engine, settings: Settings
) -> None:
    """Old rows that a source no longer keeps are nobody's business here."""
    merged = node_of("gold.merged", "merged", ORDERS.name)
    sums = some_sums(embedded_engine, settings, merged)
    name = embedded_engine.catalog.sql_name(ORDERS.name)
    embedded_engine.sql(f"DELETE FROM {name} WHERE day = DATE'{FEBRUARY}'")
    before = sums.rows(merged.table.name)

    sums.compute_anew(sums.erase())

    assert sums.rows(merged.table.name) == [row for row in before if row[3] < LARGE]


def test_commits_that_were_expired_tell_no_partitions_so_that_all_are_computed(
    embedded_engine: Engine, settings: Settings
) -> None:
    sums = some_sums(embedded_engine, settings, DAILY)
    rows = sums.erase()
    catalog = embedded_engine.catalog.name
    sums.land([(9, FEBRUARY, "c", 5)])
    embedded_engine.sql(
        f"CALL {catalog}.system.expire_snapshots('{ORDERS.name}',"
        " TIMESTAMP '2999-01-01 00:00:00', 1)"
    )

    sums.compute_anew(rows)

    assert sums.everything() == sums.expected()
