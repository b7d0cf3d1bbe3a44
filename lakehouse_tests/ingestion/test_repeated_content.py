"""A repeated delivery is reported if its rows land twice or not again; without a JVM."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from lakehouse.ingestion.land import repeated_content
from lakehouse.orchestration.deployment import open_engine
from lakehouse_tests.ingestion.conftest import FRUITS

pytestmark = pytest.mark.unit
APPLE = "id,fruit,berry\n1,Apple,false\n"


@pytest.fixture
def engine(settings):
    return open_engine(settings)


@pytest.fixture
def landed(engine):
    def add(name: str, sha256: str, day: int = 1) -> None:
        client = engine.catalog.client
        at = pa.array([datetime(2026, 3, day, tzinfo=UTC)], pa.timestamp("us", "UTC"))
        row = pa.table({"_source_file": [name], "_source_sha256": [sha256], "_ingested_at": at})
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


def test_a_return_to_an_earlier_content_of_the_same_name_is_told(engine, inbox, landed):
    inbox.put("stock of today.csv", APPLE)
    delivery = inbox.look().delivery
    name, sha256 = delivery.files[0].source_file, delivery.files[0].sha256
    landed(name, "e" * 64, day=1)
    landed(name, sha256, day=2)
    landed("others.csv", "f" * 64, day=3)
    assert repeated_content(engine, FRUITS.table, delivery) == []

    landed(name, "d" * 64, day=3)
    assert repeated_content(engine, FRUITS.table, delivery) == [
        "'stock of today.csv' has the content of an earlier delivery of that name, and newer"
        " content came since: its rows do not land again. If they are to count, deliver it under"
        " another name, or take the newer out: `lakehouse reject 'stock of today.csv' --feed"
        " fruits --why …`."
    ]
