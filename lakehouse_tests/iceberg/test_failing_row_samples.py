"""Sample rows of a snapshot, and of rows that break a rule."""

import pytest

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_result import Published
from lakehouse.iceberg.read.sample_rows import first_rows
from lakehouse.iceberg.rules.rows import between
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Column, IcebergTable, Overwrite
from lakehouse_tests.iceberg.declarations import EVENTS, rows_of, snapshot_id

pytestmark = pytest.mark.spark


def shown(engine: Engine, limit: int = 5) -> list[int]:
    return sorted(
        row["id"] for row in first_rows(engine, EVENTS, snapshot_id(engine, EVENTS.name), limit)
    )


def append(engine: Engine, *ids: int) -> None:
    write(engine, EVENTS, rows_of(engine, "id bigint, v int", [(number, 1) for number in ids]))


def test_rows_that_a_snapshot_added_are_shown(embedded_engine: Engine) -> None:
    append(embedded_engine, 1, 2)
    append(embedded_engine, 3, 4)
    assert shown(embedded_engine) == [3, 4]
    assert len(shown(embedded_engine, limit=1)) == 1


def test_no_manifest_of_an_earlier_commit_is_read(
    embedded_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.manifest import ManifestFile

    for number in range(4):
        append(embedded_engine, number)
    read, fetch = [], ManifestFile.fetch_manifest_entry
    monkeypatch.setattr(
        ManifestFile,
        "fetch_manifest_entry",
        lambda self, *given, **named: read.append(self) or fetch(self, *given, **named),
    )
    assert shown(embedded_engine, limit=1) == [3]
    assert [manifest.added_snapshot_id for manifest in read] == [
        snapshot_id(embedded_engine, EVENTS.name)
    ]


def test_times_that_python_does_not_know_are_shown_as_text(embedded_engine: Engine) -> None:
    table = IcebergTable(
        "silver.far",
        "Far away.",
        [Column("d", "date"), Column("at", "timestamp"), Column("v", "int")],
        write=Overwrite(),
        rules=[between("v", 0, 1, on_failure="warn")],
    )
    far = "SELECT DATE '9999-12-31' + 1 AS d, TIMESTAMP '9999-12-31' + INTERVAL 2 DAYS AS at, 7 AS v"
    done = write(embedded_engine, table, lambda: embedded_engine.sql(far))

    assert isinstance(done, Published)
    (result,) = [found for found in done.results if found.rule.name == "between_v"]
    (broken,) = result.sample
    assert (broken["d"], broken["at"]) == ("+10000-01-01", "+10000-01-02 00:00:00")
