"""Files are named for what they are to the lakehouse."""

import pytest

from lakehouse.privacy.verifier import places
from lakehouse.privacy.verifier.places import place_of

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("warehouse/b/t-0f8fad5bd9cb469fa16570867728950e/data/d=1/a.parquet", places.DATA_FILE),
        ("warehouse/b/t/data/.a.parquet.crc", places.DATA_FILE),
        ("warehouse/b/t_quarantine/data/a.parquet", places.QUARANTINE),
        (
            "warehouse/b/t_quarantine-0f8fad5bd9cb469fa16570867728950e/data/a.orc",
            places.QUARANTINE,
        ),
        ("warehouse/b/t/metadata/0f8f-m0.avro", places.MANIFEST),
        ("warehouse/b/t/metadata/snap-1-1-0f8f.avro", places.MANIFEST_LIST),
        ("warehouse/b/t/metadata/00001-0f8f.metadata.json", places.METADATA),
        ("warehouse/b/t/metadata/00001-0f8f.gz.metadata.json", places.METADATA),
        ("warehouse/b/t/metadata/1-0f8f.stats", places.STATISTICS),
        ("warehouse/b/t/metadata/version-hint.text", places.OTHER),
        ("inbox/raw/a.csv", places.DELIVERED),
        ("archive/raw/2024-01-01/a.csv.gz", places.ARCHIVE),
        ("rejected/raw/a.csv", places.REJECTED),
        ("rejected/raw/a.csv.reason.json", places.REASON),
        ("staging/raw/a.parquet", places.STAGING),
        ("catalog.db", places.CATALOG),
        ("catalog.db-wal", places.CATALOG),
        ("dagster/history/runs.db", places.DAGSTER),
        ("dagster/storage/1/compute_logs/a.err", places.COMPUTE_LOG),
        ("alerts.jsonl", places.ALERTS),
        ("alerts/state.json", places.ALERTS),
        ("logs/spark.log", places.SPARK_LOG),
        ("tmp/1/blockmgr/0c/shuffle_0_0_0.data", places.TEMPORARY),
        ("privacy/gone.json", places.PRIVACY),
        ("logs/dev.log", places.OTHER),
        ("dev.json", places.OTHER),
        ("", places.OTHER),
    ],
)
def test_a_file_is_named_by_where_it_stands(key, place):
    assert place_of(key) == place
