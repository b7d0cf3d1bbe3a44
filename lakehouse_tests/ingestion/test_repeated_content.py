"""A file that was delivered before under another name is told; on real tables, without a JVM."""

import pyarrow as pa
import pytest

from lakehouse.iceberg.read import landed_names
from lakehouse.ingestion.repeated_content import repeated_content
from lakehouse.runtime.deployment import open_engine
from lakehouse_tests.ingestion.conftest import FRUITS

pytestmark = pytest.mark.unit
APPLE = "id,fruit,berry\n1,Apple,false\n"


@pytest.fixture
def engine(settings):
    """An engine whose bronze table was filled by nobody yet."""
    return open_engine(settings)


@pytest.fixture
def landed(engine):
    """Put a row of some content into bronze."""

    def add(name: str, sha256: str) -> None:
        client, row = (
            engine.catalog.client,
            pa.table({"_source_file": [name], "_source_sha256": [sha256]}),
        )
        client.create_namespace_if_not_exists("bronze")
        client.create_table_if_not_exists(FRUITS.table, row.schema).append(row)

    return add


def test_a_renamed_copy_is_told_and_the_same_file_again_is_not(engine, inbox, landed):
    inbox.put("a.csv", APPLE)
    first = inbox.look().delivery
    assert repeated_content(engine, FRUITS.table, first) == []

    landed("a.csv", first.files[0].sha256)
    assert repeated_content(engine, FRUITS.table, first) == []
    inbox.put("copy of a.csv", APPLE)
    assert repeated_content(engine, FRUITS.table, inbox.look().delivery) == [
        "'copy of a.csv' has the content of a.csv, which landed before it: its rows are there"
        " twice. If that is not meant, `lakehouse reject 'copy of a.csv' --feed fruits --why …`"
        " takes them out."
    ]


def test_two_of_one_delivery_are_told_and_files_without_rows_are_not(engine, inbox):
    for name in ("1.csv", "2.csv"):
        inbox.put(name, APPLE)
        inbox.put(f"empty_{name}", "id,fruit,berry\n")

    (said,) = repeated_content(engine, FRUITS.table, inbox.look().delivery)
    assert said.startswith("2.csv has the content of 1.csv, which landed before it")


def test_a_look_into_many_files_is_not_taken(engine, inbox, landed, monkeypatch):
    inbox.put("b.csv", APPLE)
    delivery = inbox.look().delivery
    landed("a.csv", delivery.files[0].sha256)
    assert len(repeated_content(engine, FRUITS.table, delivery)) == 1

    monkeypatch.setattr(landed_names, "_MOST_FILES", 0)
    assert repeated_content(engine, FRUITS.table, delivery) == []
