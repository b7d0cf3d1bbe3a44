"""Stale branches: those of dead writers and of old refused writes go, those of people stay."""

from datetime import UTC, datetime, timedelta
from secrets import token_hex

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.branch import audit_branch, blocked_branch, new_write_id
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.upkeep.stale_branches import drop_stale_branches
from lakehouse_tests.iceberg.upkeep.tables import NAME, create

REFUSED_BEFORE = timedelta(days=7)


def write_id(days_ago: float) -> str:
    at = datetime.now(UTC) - timedelta(days=days_ago)
    return f"{int(at.timestamp() * 1000):012x}{token_hex(10)}"


def test_branches_of_dead_writers_and_old_blocked_ones_go(embedded_engine: Engine) -> None:
    sick = create(embedded_engine, "id bigint")
    embedded_engine.sql(f"INSERT INTO {sick} VALUES (1)")
    died_here = new_write_id()
    with table_lock(embedded_engine, NAME) as log:
        log.begin(died_here)
    stale = {audit_branch(died_here), audit_branch(write_id(2)), blocked_branch(write_id(8))}
    kept = {audit_branch(write_id(0.1)), blocked_branch(write_id(6)), "refused_by_people"}
    for branch in stale | kept:
        embedded_engine.sql(f"ALTER TABLE {sick} CREATE BRANCH {branch}")
    before = datetime.now(UTC) - REFUSED_BEFORE

    result = drop_stale_branches(embedded_engine, NAME, blocked_before=before)

    assert (result.outcome, result.step_metrics["dropped_branches"]) == ("done", 3)
    assert set(read_history(embedded_engine, NAME).refs) == {"main", *kept}
    again = drop_stale_branches(embedded_engine, NAME, blocked_before=before)
    assert again.outcome == "skipped"
