"""The BNPL tables change under rows that are there: readers of old and new snapshots both work,
and writes go on.
"""

from dataclasses import dataclass
from typing import Any

import pytest

from lakehouse.assets.silver.bnpl_transactions_clean import TABLE
from lakehouse.errors import PendingChanges
from lakehouse.iceberg.evolve.planning import apply, ensure, plan_now
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.tables.table import IcebergTable
from lakehouse_tests.assets.bnpl_variants import (
    FRIDAY,
    MONDAY,
    TUESDAY,
    WEDNESDAY,
    Row,
    csv_text,
    publish,
    readers,
    renamed,
    transaction,
    without,
)
from lakehouse_tests.assets.pipeline import Pipeline
from lakehouse_tests.iceberg.declarations import content, data_files, snapshot_id

pytestmark = [pytest.mark.spark, pytest.mark.long]


@dataclass(frozen=True)
class Change:
    """A change of the declaration; `old` and `new` are what the readers of each see of the
    first transaction.
    """

    before: IcebergTable
    after: IcebergTable
    old: Row
    new: Row
    delivered: Row
    """What the files deliver from then on."""
    refused: Row
    """What the quarantine shows of a row that was refused before."""


def rename(old: str, new: str) -> Change:
    before = TABLE if old in TABLE.column_names else renamed(TABLE, "amount", old)
    shown = {old: "-1", new: "-1"}
    return Change(
        before,
        renamed(before, old, new),
        {old: "10.00"},
        {new: "10.00"},
        {new: "20.00"},
        {new: shown[new]},
    )


CHANGES = {
    "payment_method added": Change(
        without(TABLE, "payment_method"),
        TABLE,
        {},
        {"payment_method": None},
        {"payment_method": "CARD"},
        {"payment_method": None},
    ),
    "amount renamed": rename("amount", "transaction_amount"),
    "region dropped": Change(
        TABLE,
        without(TABLE, "region", dropped=["region"]),
        {"region": "north"},
        {},
        {},
        {"amount": "-1"},
    ),
}


# The engine's own tests show other changes.
@pytest.mark.parametrize("name", ["payment_method added", "amount renamed"])
def test_readers_of_old_and_new_snapshots_both_work_and_writes_go_on(
    embedded_engine: Engine, name: str
) -> None:
    change = CHANGES[name]
    before = land(embedded_engine, change)
    (monday,) = [
        path for path in data_files(embedded_engine, TABLE.name) if str(MONDAY) in path
    ]

    bring_to(embedded_engine, change.after)
    now = snapshot_id(embedded_engine, TABLE.name)
    bad = row(change.after, 9, TUESDAY, **{**change.delivered, "status": "LOST"})
    good = row(change.after, 2, TUESDAY, **change.delivered)
    done = publish(embedded_engine, change.after, [TUESDAY], good, bad)

    assert done.quarantined is not None
    assert (done.row_count, done.quarantined.rows) == (2, 1)
    assert monday in data_files(embedded_engine, TABLE.name)
    for snapshot, table, seen in (
        (before, change.before, change.old),
        (now, change.after, change.new),
        (None, change.after, change.new),
    ):
        for found in readers(embedded_engine, TABLE.name, snapshot).values():
            assert len(found) == 2
            assert [*found[0]] == [
                name
                for name in table.column_names
                if name not in ("created_at", "_ingested_at")
            ]
            assert shown(found[0], seen) == seen
    the_quarantine_goes_on(embedded_engine, change)
    assert plan_now(embedded_engine, change.after).is_empty


def the_quarantine_goes_on(engine: Engine, change: Change) -> None:
    """What was refused before the change stands beside what is refused since."""
    quarantine = change.after.quarantine
    assert quarantine is not None
    quarantined = engine.sql(
        f"SELECT * FROM {engine.catalog.sql_name(quarantine.name)} ORDER BY transaction_id"
    ).collect()
    assert [found["transaction_id"] for found in quarantined] == ["8", "9"]
    assert quarantined[0].__fields__ == list(quarantine.column_names)
    assert shown(quarantined[0].asDict(), change.refused) == change.refused


@pytest.mark.parametrize("name", ["amount renamed", "region dropped"])
def test_what_takes_a_name_away_waits_for_apply_on_both_tables(
    embedded_engine: Engine, name: str
) -> None:
    change = CHANGES[name]
    land(embedded_engine, change)
    with pytest.raises(
        PendingChanges, match=r"silver\.bnpl_transactions_clean .* `lakehouse apply`"
    ):
        publish(embedded_engine, change.after, [TUESDAY])
    apply(embedded_engine, change.after)
    with pytest.raises(
        PendingChanges, match=r"silver\.bnpl_transactions_quarantine .* `lakehouse apply`"
    ):
        publish(embedded_engine, change.after, [TUESDAY])
    bring_to(embedded_engine, change.after)
    publish(embedded_engine, change.after, [TUESDAY])
    assert content(embedded_engine, TABLE.name, "transaction_id") == [(1,)]


def test_files_lack_payment_method_until_they_have_it(bnpl: Pipeline) -> None:
    """A silver table that was made without the column gains it, and it is NULL for what came
    without.
    """
    ensure(bnpl.engine, without(TABLE, "payment_method"))
    bnpl.write("lacks.csv", csv_text([transaction(3, WEDNESDAY)], lacking="payment_method"))
    assert bnpl.ingest().success
    bnpl.write("has.csv", csv_text([transaction(4, FRIDAY, payment_method="CARD")]), second=1)
    assert bnpl.ingest().success

    found = "transaction_id, payment_method"
    assert bnpl.rows(f"SELECT {found} FROM bronze.bnpl_transactions_raw ORDER BY 1") == [
        ("3", None),
        ("4", "CARD"),
    ]
    assert bnpl.rows(f"SELECT {found} FROM {TABLE.name} ORDER BY 1") == [(3, None), (4, "CARD")]
    profile = "SELECT transactions, preferred_payment_method FROM gold.customer_profiles"
    assert bnpl.rows(profile) == [(2, "CARD")]


def land(engine: Engine, change: Change) -> int:
    """Write two days, of which one row is refused."""
    values: dict[str, Any] = (
        {"device": ("ios",)} if "device" in change.before.column_names else {}
    )
    amount = next(name for name in change.before.column_names if name.endswith("amount"))
    done = publish(
        engine,
        change.before,
        [MONDAY, TUESDAY],
        row(change.before, 1, MONDAY, **values),
        row(change.before, 2, TUESDAY, **values),
        row(change.before, 8, TUESDAY, **values, **{amount: "-1"}),
    )
    assert done.snapshot_id is not None
    return done.snapshot_id


def row(table: IcebergTable, number: int, day: Any, **values: Any) -> Row:
    """Return a row of a variant, in which the amount may have another name."""
    return transaction(number, day, **{"transaction_amount": "10.00", **values})


def bring_to(engine: Engine, table: IcebergTable) -> None:
    """Apply a declaration, and that of its quarantine, as `lakehouse apply` does."""
    for one in (table, table.quarantine):
        assert one is not None
        apply(engine, one)
        assert plan_now(engine, one).is_empty


def shown(found: Row, wanted: Row) -> Row:
    """Return those values of a row that are asked for; numbers as text."""
    return {
        name: str(found[name]) if isinstance(wanted[name], str) else found[name]
        for name in wanted
    }
