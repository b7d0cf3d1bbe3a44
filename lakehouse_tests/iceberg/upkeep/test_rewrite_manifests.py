"""Manifests and statistics: fewer manifests of each partition spec, and figures that follow the
rows.
"""

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.manifests import read_manifests
from lakehouse.iceberg.upkeep.rewrite_manifests import rewrite_manifests
from lakehouse.iceberg.upkeep.table_statistics import compute_statistics
from lakehouse_tests.conftest import newer_iceberg, on_embedded_alone
from lakehouse_tests.iceberg.upkeep.tables import MERGE_ON_READ, NAME, create, local_path, rows


def test_each_partition_spec_gets_one_manifest_of_a_kind(embedded_engine: Engine) -> None:
    sick = create(embedded_engine, "id bigint, part int", "part", MERGE_ON_READ)
    for number in range(2):
        embedded_engine.sql(f"INSERT INTO {sick} SELECT id, {number} FROM range(9)")
    embedded_engine.sql(f"DELETE FROM {sick} WHERE id = 3")
    embedded_engine.sql(f"ALTER TABLE {sick} ADD PARTITION FIELD bucket(2, id)")
    for number in range(2):
        embedded_engine.sql(f"INSERT INTO {sick} SELECT id, {number} FROM range(9)")
    before = rows(embedded_engine)
    count = len(read_manifests(embedded_engine.catalog.load(NAME)))

    result = rewrite_manifests(embedded_engine, NAME)

    manifests = read_manifests(embedded_engine.catalog.load(NAME))
    kinds = [(manifest.partition_spec_id, int(manifest.content)) for manifest in manifests]
    assert sorted(kinds) == [(0, 0), (0, 1), (1, 0)]
    assert result.outcome == "done"
    assert result.step_metrics["manifests_before"] == count > 3
    assert result.step_metrics["manifests_after"] == 3
    assert rows(embedded_engine) == before
    assert rewrite_manifests(embedded_engine, NAME).outcome == "skipped"


@on_embedded_alone("looks at files of a folder")
def test_statistics_follow_the_rows_and_old_ones_go(embedded_engine: Engine) -> None:
    sick = create(embedded_engine, "id bigint, part int")
    embedded_engine.sql(f"INSERT INTO {sick} SELECT id, 1 FROM range(9)")
    assert compute_statistics(embedded_engine, NAME).outcome == "done"
    assert compute_statistics(embedded_engine, NAME).outcome == "skipped"
    (old,) = embedded_engine.catalog.load(NAME).metadata.statistics
    embedded_engine.sql(f"INSERT INTO {sick} SELECT id, 1 FROM range(9)")

    result = compute_statistics(embedded_engine, NAME)

    (current,) = embedded_engine.catalog.load(NAME).metadata.statistics
    assert (result.outcome, result.step_metrics["removed_files"]) == ("done", 1)
    assert current.snapshot_id != old.snapshot_id
    assert local_path(current.statistics_path).exists()
    assert not local_path(old.statistics_path).exists()


@newer_iceberg("has no compute_table_stats")
def test_old_statistics_of_format_3_stay_until_their_snapshots_go(
    embedded_engine: Engine,
) -> None:
    sick = create(embedded_engine, "id bigint", properties={"format-version": "3"})
    outcomes = []
    for _ in range(2):
        embedded_engine.sql(f"INSERT INTO {sick} SELECT id FROM range(9)")
        outcomes.append(compute_statistics(embedded_engine, NAME).outcome)

    metadata = embedded_engine.catalog.load(NAME).metadata
    assert outcomes == ["done", "done"]
    assert {file.snapshot_id for file in metadata.statistics} == {
        snapshot.snapshot_id for snapshot in metadata.snapshots
    }
