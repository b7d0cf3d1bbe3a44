"""The sample files are what they were published as."""

import hashlib
from pathlib import Path

import lakehouse.sample_data
from lakehouse.tables.feed import Feed
from lakehouse_tests.ingestion.conftest import Inbox

FRUITS = Path(lakehouse.sample_data.__file__).parent / "fruits"


def test_they_are_what_the_feed_declares(store) -> None:
    inbox = Inbox(store, Feed("fruits", ["id", "fruit", "berry"], "bronze.raw_fruits"))
    for file in sorted(FRUITS.glob("*.csv")):
        store.put(file, f"inbox/fruits/{file.name}")

    taken = inbox.look()

    assert [(file.source_file, file.rows) for file in taken.delivery.files] == [
        ("fruit.csv", 100), ("fruit_1.csv", 30), ("fruit_2.csv", 30), ("fruit_3.csv", 20),
    ]  # fmt: skip


def test_they_are_unchanged() -> None:
    found = hashlib.sha256(
        b"".join(file.read_bytes() for file in sorted(FRUITS.glob("*.csv")))
    ).hexdigest()

    assert found == "6423ee3c25a525a4aca7fa0c4f57867345dae703ce53b01d7f3d75e1063ab0e7"
