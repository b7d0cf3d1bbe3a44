"""A delivery that a person rejected, of a feed that leaves its files in the inbox: it stays
rejected, whatever becomes of the file, until it is delivered anew.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_result import Published, Unchanged
from lakehouse.ingestion.ad_hoc_files import copy_ad_hoc_files, select_store
from lakehouse.ingestion.land import Landing, land
from lakehouse.ingestion.withdraw_delivery import Withdrawn, reject
from lakehouse.settings import Settings
from lakehouse.storage.object_store import LocalObjectStore
from lakehouse.tables.feed import bronze_table
from lakehouse_tests.ingestion.conftest import CUSTOMERS, Inbox
from lakehouse_tests.privacy.files.conftest import ANN, MIXED, Files

FEED = replace(CUSTOMERS, after="leave")
TABLE = bronze_table(FEED, "Customers as delivered.")
OTHER = "customer_id,email\n5,eve@example.com\n"


@dataclass
class Left:
    """A feed that leaves its files, with a delivery in its inbox that was rejected."""

    engine: Engine
    settings: Settings
    inbox: Inbox

    @property
    def file(self) -> Path:
        return self.settings.home / FEED.inbox / "c.csv"

    def ingest(self, path: Path | None = None) -> Landing:
        """Land what waits, or what a person names."""
        home, store = self.settings.home, self.inbox.store
        if path is None:
            return land(self.engine, FEED, TABLE, store, home)
        with copy_ad_hoc_files(self.settings, FEED, str(path)) as copies:
            return land(self.engine, FEED, TABLE, select_store(store, FEED, str(copies)), home)

    def reject(self) -> Withdrawn:
        return reject(self.settings, self.engine, FEED, [], "c.csv", by="x", why="y")

    def ids(self) -> list[str]:
        """The customers that bronze has."""
        rows = self.engine.sql(f"SELECT customer_id FROM {self._name} ORDER BY 1").collect()
        return [row[0] for row in rows]

    @property
    def _name(self) -> str:
        return self.engine.catalog.sql_name(FEED.table)


@pytest.fixture
def left(embedded_engine: Engine, settings: Settings, store: LocalObjectStore) -> Left:
    left = Left(embedded_engine, settings, Inbox(store, FEED))
    left.inbox.put("c.csv", MIXED, second=1)
    left.ingest()
    assert left.ids() == ["7", "8", "9"]
    assert left.reject().stays_in_inbox
    assert left.ids() == []
    return left


def test_it_stays_rejected_where_the_file_is_touched_or_the_note_is_lost(left: Left) -> None:
    os.utime(left.file)
    landing = left.ingest()
    (said,) = landing.warnings

    assert isinstance(landing.outcome, Unchanged)
    assert said.startswith("c.csv did not change since a user rejected it")
    assert "lakehouse ingest customers --path" in said
    assert left.ingest().warnings == [], "It is told once."

    (left.settings.home / "left" / "customers.json").unlink()
    left.ingest()
    assert left.ids() == []


def test_it_stays_rejected_where_an_erasure_rewrites_the_file(left: Left) -> None:
    files = Files(left.inbox.store, left.settings.home, FEED)
    assert files.erase(ANN).rows == 1

    landing = left.ingest()

    assert len(landing.warnings) == 1
    assert left.ids() == []


@pytest.mark.long
def test_it_lands_where_a_person_names_the_file_and_then_is_an_ordinary_one(left: Left) -> None:
    assert isinstance(left.ingest(left.file).outcome, Published)
    assert left.ids() == ["7", "8", "9"]

    os.utime(left.file)
    assert left.ingest().warnings == []
    assert left.ids() == ["7", "8", "9"]


def test_another_file_that_is_named_leaves_it_rejected(left: Left, tmp_path: Path) -> None:
    other = tmp_path / "d.csv"
    other.write_text(OTHER)
    left.ingest(other)

    left.ingest()

    assert left.ids() == ["5"]


def test_it_lands_where_it_was_taken_away_and_is_delivered_again(left: Left) -> None:
    left.file.unlink()
    left.ingest()
    left.inbox.put("c.csv", MIXED, second=2)

    assert isinstance(left.ingest().outcome, Published)
    assert left.ids() == ["7", "8", "9"]


def test_another_content_under_its_name_lands_and_after_it_the_first_one_too(
    left: Left,
) -> None:
    left.inbox.put("c.csv", OTHER, second=2)
    assert isinstance(left.ingest().outcome, Published)
    left.inbox.put("c.csv", MIXED, second=3)
    assert isinstance(left.ingest().outcome, Published)
    assert left.ids() == ["5", "7", "8", "9"]


def test_a_file_beside_it_lands(left: Left) -> None:
    os.utime(left.file)
    left.inbox.put("d.csv", OTHER)

    landing = left.ingest()

    assert [file.source_file for file in landing.delivery.files] == ["d.csv"]
    assert left.ids() == ["5"]


def test_what_was_only_named_and_never_in_the_inbox_lands_as_it_comes(
    embedded_engine: Engine, settings: Settings, store: LocalObjectStore, tmp_path: Path
) -> None:
    left = Left(embedded_engine, settings, Inbox(store, FEED))
    named = tmp_path / "c.csv"
    named.write_text(MIXED)
    left.ingest(named)
    assert not left.reject().stays_in_inbox

    left.inbox.put("c.csv", MIXED)
    left.ingest()

    assert left.ids() == ["7", "8", "9"]
