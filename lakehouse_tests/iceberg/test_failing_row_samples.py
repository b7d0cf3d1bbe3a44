"""Some rows of a snapshot, as a materialization shows them: those that it added, read of few
files.
"""

import pytest

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.read.sample_rows import first_rows
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse_tests.iceberg.declarations import EVENTS, rows_of, snapshot_id

pytestmark = pytest.mark.spark


def shown(engine: Engine, limit: int = 5) -> list[int]:
    return sorted(
        row["id"] for row in first_rows(engine, EVENTS, snapshot_id(engine, EVENTS.name), limit)
    )


def append(engine: Engine, *ids: int) -> None:
    write(engine, EVENTS, rows_of(engine, "id bigint, v int", [(number, 1) for number in ids]))


def test_what_a_snapshot_added_is_shown_first(embedded_engine: Engine) -> None:
    append(embedded_engine, 1, 2)
    append(embedded_engine, 3, 4)
    assert shown(embedded_engine, limit=2) == [3, 4]
    assert len(shown(embedded_engine, limit=1)) == 1
    assert shown(embedded_engine) == [1, 2, 3, 4]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_snapshot_that_only_deleted_shows_what_is_left(
    embedded_engine: Engine, mode: str
) -> None:
    append(embedded_engine, 1, 2, 3)
    name = embedded_engine.catalog.sql_name(EVENTS.name)
    embedded_engine.sql(
        f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.mode' = '{mode}')"
    )
    embedded_engine.sql(f"DELETE FROM {name} WHERE id = 2")
    assert shown(embedded_engine) == [1, 3]


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
