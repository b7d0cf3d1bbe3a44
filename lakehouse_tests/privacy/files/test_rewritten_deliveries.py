"""A delivery whose file was rewritten, on real Spark: either form of it is the one that bronze
has.
"""

from functools import partial

import pytest

from lakehouse.iceberg.values.write_result import Published, Unchanged
from lakehouse.ingestion.archive_names import hashed_name
from lakehouse.ingestion.delivery_decisions import deliveries, reject
from lakehouse.ingestion.land import land
from lakehouse.tables.feed import bronze_table
from lakehouse_tests.privacy.files.conftest import CUSTOMERS, MIXED, WITHOUT, sha256

TABLE = bronze_table(CUSTOMERS, "Customers as delivered.")
NAME, SHA = "c.csv", sha256(MIXED)


def landed(engine, files, content: str):
    """Deliver a content and land it."""
    files.put(f"inbox/customers/{NAME}", content)
    return land(engine, CUSTOMERS, TABLE, files.store, files.home)


def rows(engine) -> list[tuple]:
    """(number, id) of each row that bronze has."""
    name = engine.catalog.sql_name(CUSTOMERS.table)
    found = engine.sql(
        f"SELECT _source_row, customer_id, _source_sha256 FROM {name} ORDER BY 1"
    )
    return [tuple(row) for row in found.collect()]


@pytest.mark.long
def test_either_form_delivered_again_lands_nothing_and_can_be_rejected_and_landed_anew(
    embedded_engine, folder, settings
) -> None:
    landed(embedded_engine, folder, MIXED)
    folder.erase()
    embedded_engine.sql(
        f"DELETE FROM {embedded_engine.catalog.sql_name(CUSTOMERS.table)}"
        " WHERE customer_id = '7'"
    )
    left = [(1, "8", sha256(MIXED)), (3, "9", sha256(MIXED))]

    for form in (MIXED, WITHOUT):
        assert isinstance(landed(embedded_engine, folder, form).outcome, Unchanged)
        assert rows(embedded_engine) == left

    (came,) = deliveries(folder.store, embedded_engine, CUSTOMERS, NAME)
    assert (came.sha256, came.rows, len(came.archived)) == (sha256(MIXED), 2, 1)

    hash_of_new_form = sha256(WITHOUT)[:12]
    withdrawn = reject(
        settings, embedded_engine, CUSTOMERS, [], NAME, by="x", why="y", sha256=hash_of_new_form
    )
    assert withdrawn.rows == {CUSTOMERS.table: 2}
    assert withdrawn.key is not None
    assert folder.text(withdrawn.key) == WITHOUT
    assert rows(embedded_engine) == []

    assert isinstance(landed(embedded_engine, folder, WITHOUT).outcome, Published)
    assert rows(embedded_engine) == left


@pytest.fixture
def idle_engine(settings):
    """An engine whose catalog has no table."""
    from lakehouse.iceberg.catalog.catalog import Catalog
    from lakehouse.iceberg.catalog.engine import Engine

    def no_session():
        raise AssertionError("Spark was asked for")

    return Engine(Catalog.of(settings), no_session, settings.lock_dir, masking_key=b"testing")


@pytest.mark.unit
@pytest.mark.parametrize("archived_as", [hashed_name, partial(hashed_name, digits=64)])
def test_a_delivery_is_known_whose_folders_are_too_long_for_a_key(
    folder, idle_engine, archived_as
) -> None:
    name = f"{'d/' * 450}{NAME}"
    folder.put(f"archive/customers/2026-11-01/{archived_as(CUSTOMERS, name, SHA)}", MIXED)
    folder.erase()
    folder.put(f"inbox/customers/{name}", WITHOUT)

    (came,) = deliveries(folder.store, idle_engine, CUSTOMERS, name)

    assert (came.sha256, len(came.archived)) == (SHA, 1)
    assert sha256(WITHOUT) in came.forms
    assert {row[0] for row in folder.staged()} == {SHA}


@pytest.mark.unit
def test_a_delivery_is_known_by_either_hash_without_a_table(folder, idle_engine) -> None:
    folder.put("archive/customers/2026-11-01/c.{}.csv", MIXED)
    folder.erase()

    (came,) = deliveries(folder.store, idle_engine, CUSTOMERS, NAME)

    assert came.sha256 == sha256(MIXED)
    assert sha256(WITHOUT) in came.forms
