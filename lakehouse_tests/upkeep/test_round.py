"""A run of upkeep on a real table: due steps are done, and nothing is due after it."""

from datetime import UTC, datetime, timedelta

import pytest

from lakehouse.definitions import TABLES
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse.tables.upkeep import Upkeep
from lakehouse.upkeep.upkeep_run import Upkept, carry_out, plan_run
from lakehouse_tests.iceberg.upkeep.tables import MERGE_ON_READ, NAME, create, rows

DECLARED = IcebergTable(
    NAME,
    "A table that needs upkeep.",
    [Column("id", "bigint"), Column("last, first", "string")],
    write=Append(once_by=()),
    upkeep=Upkeep(timedelta(0), keep_at_least=1, sort_by=("last, first",)),
)
UPKEPT = Upkept(
    {NAME: DECLARED}, TABLES["monitoring.upkeep_runs"], TABLES["monitoring.table_health"]
)


@pytest.mark.long
def test_after_a_run_nothing_is_due(embedded_engine: Engine) -> None:
    engine = embedded_engine
    name = create(engine, "id bigint, day date, `last, first` string", "day", MERGE_ON_READ)
    for number in range(6):
        engine.sql(
            f"INSERT INTO {name} SELECT id, date'2026-01-01' + CAST(id % 3 AS INT), uuid()"
            f" FROM range({100 * number}, {100 * number + 100})"
        )
    engine.sql(f"ALTER TABLE {name} CREATE TAG month_end")
    engine.sql(f"ALTER TABLE {name} CREATE BRANCH experiment")
    for number in range(2):
        engine.sql(f"DELETE FROM {name} WHERE id % 50 = {number}")
    before, of_tag = rows(engine), rows(engine, "VERSION AS OF 'month_end'")

    now = datetime.now(UTC)
    plan = plan_run(engine, UPKEPT, [NAME], named_by_user=True, now=now)
    records = carry_out(engine, UPKEPT, plan, "run")

    outcomes = {record.step: (record.outcome, record.reason) for record in records}
    assert outcomes["compact"] == outcomes["expire_snapshots"] == ("done", ""), outcomes
    (compaction,) = (record for record in records if record.step == "compact")
    assert compaction.fewer_files == compaction.promised_fewer_files
    assert 0 < compaction.cost_bytes <= compaction.promised_cost_bytes
    assert rows(engine) == before
    assert rows(engine, "VERSION AS OF 'month_end'") == of_tag
    for by_name in (True, False):
        again = plan_run(engine, UPKEPT, [NAME], named_by_user=by_name, now=now)
        assert [(step.step, step.reason) for step in again.due] == []
