"""The sample files are what they were published as."""

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
