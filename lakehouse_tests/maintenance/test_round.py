"""A round as it is planned and carried out on a real table: what was due is done, and nothing is
due after it.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from lakehouse.definitions import TABLES
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.health_measurement import read_table_health
from lakehouse.iceberg.metadata.measured_health import TableHealth
from lakehouse.iceberg.upkeep.compact import compact
from lakehouse.iceberg.upkeep.drop_stale_branches import drop_stale_branches
from lakehouse.iceberg.upkeep.expire_snapshots import expire_snapshots
from lakehouse.iceberg.upkeep.remove_lost_metadata import remove_lost_metadata
from lakehouse.iceberg.upkeep.remove_orphans import remove_orphans
from lakehouse.iceberg.upkeep.rewrite_manifests import rewrite_manifests
from lakehouse.iceberg.upkeep.snapshot_pins import find_pins
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult
from lakehouse.iceberg.upkeep.table_statistics import compute_statistics
from lakehouse.maintenance.planner import Known, plan_upkeep
from lakehouse.maintenance.upkeep_plan import PlannedStep, UpkeepPlan
from lakehouse.maintenance.upkeep_record import UpkeepRecord, record_of
from lakehouse.maintenance.upkeep_round import Upkept, carry_out, do_step, plan_round
from lakehouse.tables.upkeep import UpkeepPolicy
from lakehouse_tests.iceberg.upkeep.tables import (
    MERGE_ON_READ,
    NAME,
    create,
    rows,
    size_bytes,
)
from lakehouse_tests.maintenance.sick_tables import past

POLICY = UpkeepPolicy(keep_snapshots_for=timedelta(0), keep_at_least=2)


def work(engine: Engine, step: PlannedStep, health: TableHealth) -> StepResult:
    """Do a step as it was planned."""
    told = step.parameters

    def moment(name: str) -> datetime:
        return datetime.fromisoformat(told[name])

    steps: dict[StepName, Callable[[], StepResult]] = {
        "compact": lambda: compact(
            engine, NAME, step.partitions, target_bytes=int(told["target_bytes"])
        ),
        "drop_branches": lambda: drop_stale_branches(
            engine, NAME, refused_before=moment("refused_before")
        ),
        "expire_snapshots": lambda: expire_snapshots(
            engine,
            NAME,
            older_than=moment("older_than"),
            keep=int(told["keep"]),
            pins=health.pins,
        ),
        "rewrite_manifests": lambda: rewrite_manifests(engine, NAME),
        "remove_orphans": lambda: remove_orphans(engine, NAME, older_than=moment("older_than")),
        "remove_lost_metadata": lambda: remove_lost_metadata(
            engine, NAME, older_than=moment("older_than")
        ),
        "compute_statistics": lambda: compute_statistics(engine, NAME),
    }
    return steps[step.step]()


@pytest.mark.long
def test_after_a_round_nothing_is_due_whoever_asks(embedded_engine: Engine) -> None:
    engine = embedded_engine
    name = create(engine, "id bigint, day date, note string", "day", MERGE_ON_READ)
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

    def planned(*records: UpkeepRecord, by_name: bool = True) -> tuple[UpkeepPlan, TableHealth]:
        health = read_table_health(engine, NAME, pins=find_pins(engine, NAME, ()))
        known = Known({NAME: POLICY}, past=past(*records))
        return plan_upkeep([health], known, now, named_by_user=by_name), health

    plan, health = planned()
    results = {step.step: work(engine, step, health) for step in plan.due}
    location = engine.catalog.load(NAME).metadata_location
    records = [
        record_of(step, results[step.step], health, ended_at=now, metadata_location=location)
        for step in plan.due
    ]

    assert {step for step, result in results.items() if result.outcome == "done"} >= {
        "compact",
        "expire_snapshots",
    }, results
    assert "failed" not in {result.outcome for result in results.values()}, results
    (compaction,) = (record for record in records if record.step == "compact")
    assert compaction.fewer_files == compaction.promised_fewer_files
    assert 0 < compaction.cost_bytes <= compaction.promised_cost_bytes
    assert rows(engine) == before
    assert rows(engine, "VERSION AS OF 'month_end'") == of_tag
    for by_name in (True, False):
        again, _ = planned(*records, by_name=by_name)
        assert [(step.step, step.reason) for step in again.due] == []


def test_after_a_change_of_spec_each_file_moves_once(embedded_engine: Engine) -> None:
    engine = embedded_engine
    name = create(engine, "id bigint, day date", "month(day)")
    for month in (1, 2):
        engine.sql(
            f"INSERT INTO {name} SELECT /*+ REPARTITION(1) */ id, date'2026-0{month}-01' +"
            " CAST(id % 2 AS INT) FROM range(1000)"
        )
    file_bytes = size_bytes(engine) // 2
    engine.sql(
        f"ALTER TABLE {name} SET TBLPROPERTIES ('write.target-file-size-bytes' ="
        f" '{file_bytes}')"
    )
    engine.sql(f"ALTER TABLE {name} REPLACE PARTITION FIELD month(day) WITH day")
    before = rows(engine)
    upkept = Upkept({}, TABLES["monitoring.upkeep_runs"], TABLES["monitoring.table_health"])

    first = plan_round(engine, upkept, [NAME], named_by_user=True)
    assert "2 files of an old partition spec" in first.plan.due[0].reason
    carry_out(engine, upkept, first, "first")

    health = read_table_health(engine, NAME)
    assert (health.files_of_old_specs, health.data_files) == (0, 4)
    assert rows(engine) == before
    second = plan_round(engine, upkept, [NAME], named_by_user=True)
    assert [(step.step, step.reason) for step in second.plan.due] == []


def test_files_are_sorted_by_columns_of_any_name(embedded_engine: Engine) -> None:
    engine = embedded_engine
    name = create(engine, "`last, first` string, id int")
    engine.sql(
        f"INSERT INTO {name} SELECT /*+ REPARTITION(6) */ uuid(), CAST(id AS INT)"
        " FROM range(60)"
    )
    health = read_table_health(engine, NAME)
    known = Known({NAME: UpkeepPolicy(sort_by=("last, first",))})
    plan = plan_upkeep([health], known, datetime.now(UTC), named_by_user=True)
    (step,) = (step for step in plan.due if step.step == "compact")

    result = do_step(engine, step, health)

    assert (result.outcome, result.reason) == ("done", "")
    in_file = [row[0] for row in engine.sql(f"SELECT `last, first` FROM {name}").collect()]
    assert in_file == sorted(in_file)
