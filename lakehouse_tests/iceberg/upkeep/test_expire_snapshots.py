"""Expiry: old snapshots and their files go, and nothing that anybody still needs."""

from datetime import UTC, datetime, timedelta

from pyspark.sql.functions import lit

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.snapshot_properties import commit_without_rows
from lakehouse.iceberg.metadata.commit_record import CommitProperties
from lakehouse.iceberg.metadata.health_metrics import SnapshotPin
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.upkeep.expire_snapshots import expire_snapshots, find_pins
from lakehouse.iceberg.upkeep.remove_orphans import remove_orphans
from lakehouse_tests.conftest import on_embedded_alone
from lakehouse_tests.iceberg.upkeep.tables import (
    NAME,
    create,
    local_path,
    make_older,
    rows,
    stored,
    undeletable,
)

READER = "gold.reader"


def overwritten(engine: Engine, times: int) -> str:
    """Make a table that was overwritten some times; only its snapshot names each file."""
    sick = create(engine, "id bigint")
    for number in range(times):
        overwrite(engine, number)
    return sick


def overwrite(engine: Engine, number: int) -> None:
    rows = engine.spark.range(number, number + 1)
    rows.writeTo(engine.catalog.sql_name(NAME)).overwrite(lit(True))


def line(engine: Engine) -> list[int]:
    return [snapshot.snapshot_id for snapshot in read_history(engine, NAME).line]


@on_embedded_alone("looks at files of a folder")
def test_old_snapshots_go_with_their_files_and_refs_and_watermarks_stay(
    embedded_engine: Engine,
) -> None:
    sick = overwritten(embedded_engine, 2)
    embedded_engine.sql(f"ALTER TABLE {sick} CREATE TAG month_end")
    embedded_engine.sql(f"ALTER TABLE {sick} CREATE BRANCH experiment")
    properties = CommitProperties("write", "w", inputs={"bronze.events": 17})
    commit_without_rows(embedded_engine, NAME, properties.to_summary())
    for number in range(2, 5):
        overwrite(embedded_engine, number)
    refs = read_history(embedded_engine, NAME).refs
    before, tagged = stored(embedded_engine), rows(embedded_engine, "VERSION AS OF 'month_end'")

    result = expire_snapshots(embedded_engine, NAME, older_than=datetime.now(UTC), keep=1)

    history = read_history(embedded_engine, NAME)
    assert (result.outcome, result.reason, result.remaining) == ("done", "", ())
    assert rows(embedded_engine) == [(4,)]
    assert rows(embedded_engine, "VERSION AS OF 'month_end'") == tagged == [(1,)]
    assert {**history.refs, "main": 0} == {**refs, "main": 0}
    assert history.watermark("bronze.events") == 17
    # Main says what it was computed from, and the tag and the branch share a snapshot.
    assert len(history.snapshots) == 2
    assert result.step_metrics["expired_snapshots"] == 5
    gone = before - stored(embedded_engine)
    assert result.step_metrics["removed_files"] == len(gone)

    again = expire_snapshots(embedded_engine, NAME, older_than=datetime.now(UTC), keep=1)

    assert again.outcome == "skipped"
    assert "no snapshot but the newest 1 is older than" in again.reason


def test_what_a_reader_has_yet_to_read_stays_and_the_reader_is_named(
    embedded_engine: Engine,
) -> None:
    overwritten(embedded_engine, 4)
    newest, third, second, _ = line(embedded_engine)
    create(embedded_engine, "id bigint", name=READER)
    properties = CommitProperties("write", "w", inputs={NAME: second})
    commit_without_rows(embedded_engine, READER, properties.to_summary())
    pins = find_pins(embedded_engine, NAME, [READER, "gold.not_there_yet"])
    assert [(pin.owner, pin.snapshot_id) for pin in pins] == [
        (f"watermark of {READER}", second)
    ]
    now = datetime.now(UTC)

    result = expire_snapshots(embedded_engine, NAME, older_than=now, keep=1, pins=pins)

    assert line(embedded_engine) == [newest, third, second]
    assert result.outcome == "done"
    assert result.reason == f"older ones are needed by watermark of {READER}"

    again = expire_snapshots(embedded_engine, NAME, older_than=now, keep=1, pins=pins)

    assert again.outcome == "skipped"
    assert again.reason.endswith(f"which is still needed by watermark of {READER}")


def test_a_tag_keeps_its_own_snapshot_and_a_restore_point_what_came_after(
    embedded_engine: Engine,
) -> None:
    sick = overwritten(embedded_engine, 5)
    _, _, third, second, first = line(embedded_engine)
    embedded_engine.sql(f"ALTER TABLE {sick} CREATE TAG old AS OF VERSION {first}")
    (tag,) = find_pins(embedded_engine, NAME, [])
    assert (tag.owner, tag.snapshot_id, tag.needs_later) == ("tag old", first, False)
    committed_at = read_history(embedded_engine, NAME).snapshots[third].committed_at
    point = SnapshotPin("restore point before-migration", third, committed_at)

    expire_snapshots(
        embedded_engine, NAME, older_than=datetime.now(UTC), keep=1, pins=[tag, point]
    )

    left = read_history(embedded_engine, NAME).snapshots
    assert second not in left
    assert {first, third} < set(left)


@on_embedded_alone("keeps a file from being deleted")
def test_a_file_that_could_not_be_deleted_is_later_an_orphan(embedded_engine: Engine) -> None:
    overwritten(embedded_engine, 2)
    data = local_path(embedded_engine.catalog.load(NAME).location()) / "data"
    oldest = min(data.glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)

    with undeletable(oldest):
        result = expire_snapshots(embedded_engine, NAME, older_than=datetime.now(UTC), keep=1)

    assert result.outcome == "done"
    make_older(oldest, days=8)
    week_ago = datetime.now(UTC) - timedelta(days=7)
    assert remove_orphans(embedded_engine, NAME, older_than=week_ago).outcome == "done"
    assert not oldest.exists()
    assert rows(embedded_engine) == [(1,)]
