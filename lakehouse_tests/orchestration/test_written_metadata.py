"""What a materialization shows of a write."""

from lakehouse.iceberg.metadata.write_result import Pin
from lakehouse.orchestration.written_metadata import pin_metadata


def test_an_input_without_a_snapshot_names_none() -> None:
    assert pin_metadata(Pin("silver.a", None, rows=0)) == {"table": "silver.a", "rows": 0}


def test_an_input_is_named_with_its_snapshot() -> None:
    read = pin_metadata(Pin("silver.a", 17, since_snapshot_id=16, rows=2))
    assert read == {
        "table": "silver.a",
        "snapshot_id": "17",
        "rows": 2,
        "since_snapshot_id": "16",
    }
