"""Manifest rewrites keep one manifest of each kind per partition spec."""

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.manifests import read_manifests
from lakehouse.upkeep.manifest_rewrite import rewrite_manifests
from lakehouse_tests.iceberg.upkeep.tables import MERGE_ON_READ, NAME, create, rows


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
