"""Rows that an erasure took are no rows that a table lost."""

from dataclasses import replace
from datetime import UTC, datetime, timezone

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.delete_rows import delete_rows
from lakehouse.iceberg.erasure.erasure_commits import rows_erased_between
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.rules.evaluable_rule import EvaluatedSnapshot
from lakehouse.iceberg.rules.size_schema_and_freshness import row_count_change
from lakehouse.quality.metrics.run_metrics import growth_since_midnight
from lakehouse_tests.iceberg.erasure.people import ANNA, ORDERS, REQUEST, fill


def orders(customer: int, count: int) -> list[tuple]:
    return [(at, customer, f"c{customer}@example.org", "", None) for at in range(count)]


def test_a_table_has_not_shrunk_for_it(engine: Engine) -> None:
    fill(engine, ORDERS, [*orders(7, 5), *orders(8, 5)])
    fill(engine, ORDERS, orders(8, 1))
    delete_rows(engine, ORDERS, [ANNA], REQUEST)
    history = read_history(engine, ORDERS.name)
    rule = row_count_change(at_least=0.0)
    table = replace(ORDERS, rules=[rule])

    result = rule.snapshot_result(EvaluatedSnapshot(engine, table, history, history.main))

    assert result.passed
    assert result.value == 0.1
    assert "and 5 rows were erased since" in result.note


def test_the_growth_of_a_day_counts_them(engine: Engine) -> None:
    fill(engine, ORDERS, [*orders(7, 5), *orders(8, 5)])
    before = read_history(engine, ORDERS.name).main
    # The day begins now, in a zone of its own.
    now = datetime.now(UTC)
    zone = timezone(now.replace(hour=0, minute=0, second=0, microsecond=0) - now)
    delete_rows(engine, ORDERS, [ANNA], REQUEST)
    fill(engine, ORDERS, orders(8, 2))
    history = read_history(engine, ORDERS.name)

    later = datetime.now(UTC)
    growth = growth_since_midnight(
        engine.catalog, ORDERS.name, history.main.snapshot_id, later, zone
    )

    assert rows_erased_between(history, before.snapshot_id, history.main.snapshot_id) == 5
    assert growth == 2
