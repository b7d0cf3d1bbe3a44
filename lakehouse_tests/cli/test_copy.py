"""`lakehouse copy`: the tables of a deployment in another one, without a JVM."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.recovery import copy_tables
from lakehouse.settings import Settings
from lakehouse.storage.file_lock import file_lock
from lakehouse_tests.cli.conftest import Lakehouse, Ran
from lakehouse_tests.conftest import settings_at

SCHEMA = Schema(NestedField(1, "id", LongType()))
Copy = Callable[..., Ran]
TABLES = ("bronze.raw", "silver.clean", "silver.clean_quarantine")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Where the tables come to."""
    return tmp_path / "other"


@pytest.fixture
def tables(home: Path) -> Catalog:
    """A catalog with three tables, of one to three rows."""
    catalog = Catalog.of(settings_at(home))
    for at, name in enumerate(TABLES, 1):
        made(catalog, name, *range(at))
    return catalog


@pytest.fixture
def copy(lakehouse: Lakehouse, tables: Catalog, home: Path, other: Path) -> Copy:
    """Copy the tables to the other home."""
    return lambda *options: lakehouse("copy", str(home), str(other), *options)


def made(catalog: Catalog, name: str, *ids: int) -> None:
    catalog.client.create_namespace_if_not_exists(name.partition(".")[0])
    catalog.client.create_table(name, SCHEMA)
    append(catalog, name, *ids)


def append(catalog: Catalog, name: str, *ids: int) -> None:
    table = catalog.load(name)
    rows = pa.table({"id": pa.array(ids, pa.int64())}, schema=table.schema().as_arrow())
    table.append(rows)


def counts(home: Path) -> dict[str, int]:
    catalog = Catalog.of(settings_at(home))
    return {name: catalog.load(name).scan().count() for name in catalog.tables()}


def test_all_tables_come_and_each_is_said(copy: Copy, other: Path) -> None:
    ran = copy()

    assert ran.code == 0, ran.err
    assert counts(other) == {"bronze.raw": 1, "silver.clean": 2, "silver.clean_quarantine": 3}
    assert ran.out[0].startswith("bronze.raw copied: 1 row, 1 snapshot, 1 file, ")
    assert ran.out[-1] == f"{other} has 3 tables of these."


def test_a_table_that_is_not_there_is_wrong_usage(copy: Copy) -> None:
    ran = copy("silver.clear")

    assert ran.code == 2
    assert "did you mean silver.clean?" in ran.err[0]


def test_tables_with_other_rows_are_rejected_by_name_and_nothing_is_copied(copy, other):
    target = Catalog.of(settings_at(other))
    made(target, "silver.clean", 7)
    made(target, "silver.clean_quarantine", 0, 1, 2)

    ran = copy()

    assert ran.code == 1
    assert f"{other} has silver.clean with other rows" in ran.err[0]
    assert "`drop_table` of PyIceberg for a quarantine" in ran.err[0]
    assert counts(other) == {"silver.clean": 1, "silver.clean_quarantine": 3}


def test_a_dry_run_copies_nothing(copy: Copy, other: Path) -> None:
    ran = copy("--dry-run")

    assert ran.out == [f"{name} would be copied." for name in TABLES]
    assert not other.exists()
    other.mkdir()
    assert (copy("--dry-run").out, [*other.iterdir()]) == (ran.out, [])


@pytest.mark.parametrize(
    ("places", "said"),
    [
        (("s3://one", "s3://two"), "are in one Glue catalog"),
        (("s3://one/below", "there"), "'s3://one/below' is no place of a lakehouse"),
        (("nowhere", "there"), "There is no lakehouse at"),
        (("same", "same"), "would be copied to itself"),
    ],
)
def test_places_that_cannot_be_are_wrong_usage(lakehouse, places, said, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    ran = lakehouse("copy", *places)

    assert ran.code == 2
    assert said in ran.err[0]
    assert not (tmp_path / "nowhere").exists()


def test_keys_and_erasure_records_are_copied(copy: Copy, home: Path, other: Path) -> None:
    write(home / "privacy" / "gone.json", json.dumps([{"hmac": "ab"}]))
    write(home / "privacy" / "hmac.key", "00")
    write(home / "masking.key", "secret")
    write(home / "inbox" / "sales" / "a.csv", "id")

    ran = copy()

    assert ran.out[:3] == [
        "privacy/hmac.key copied.",
        "masking.key copied.",
        "privacy/gone.json copied.",
    ]
    assert (other / "masking.key").read_text() == "secret"
    assert (other / "privacy").stat().st_mode & 0o077 == 0
    assert not (other / "inbox").exists()


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize("gone", [[], [{"hmac": "ab"}]], ids=["nobody", "others"])
def test_rows_do_not_come_to_where_others_were_erased(copy, home, other, gone):
    write(home / "privacy" / "gone.json", json.dumps(gone))
    write(other / "privacy" / "gone.json", json.dumps([{"hmac": "cd"}]))

    ran = copy()

    assert ran.code == 1
    assert "has erased people that" in ran.err[0]
    assert counts(other) == {}


@pytest.mark.parametrize("where", ["from there", "to there"])
def test_nothing_is_copied_while_people_are_erased(copy, home, other, where):
    place = home if where == "from there" else other
    busy = LakehouseError("held")
    with file_lock(place / "privacy" / ".erase.lock", 0, busy):
        ran = copy()

    assert ran.code == 1
    assert f"People are being erased from {place}" in ran.err[0]
    assert counts(other) == {}


def before_each_table(patch, act: Callable[[str], object]) -> None:
    """Let something happen before each table is copied."""
    real = copy_tables.copy_table

    def copy_after(source, name, *rest, **named):
        act(name)
        return real(source, name, *rest, **named)

    patch.setattr(copy_tables, "copy_table", copy_after)


def gone(home: Path, *people: str, at: str = "2026-01-01") -> None:
    listed = [{"hmac": digest, "erased_at": at} for digest in people]
    write(home / "privacy" / "gone.json", json.dumps(listed))


def known(home: Path) -> dict[str, str]:
    people = json.loads((home / "privacy" / "gone.json").read_text())
    return {person["hmac"]: person["erased_at"] for person in people}


def test_who_was_erased_since_a_kill_is_known_after_it(copy, home, other):
    gone(home, "ab", "cd")
    gone(other, "ab", at="2026-02-02")
    for place in (home, other):
        write(place / "privacy" / "hmac.key", "00")
    made(Catalog.of(settings_at(other)), "silver.before", 1)

    ran = copy()

    assert ran.code == 0
    assert ran.out[0] == "privacy/gone.json copied."
    assert known(other) == {"ab": "2026-02-02", "cd": "2026-01-01"}
    assert "1 person erased" in ran.err[0], "nobody says that rows may be there"


@pytest.mark.long
def test_rows_of_who_is_erased_meanwhile_are_not_registered(
    copy: Copy, tables: Catalog, home: Path, other: Path, monkeypatch
) -> None:
    """Nobody was erased before, so that there is no lock to hold."""

    def erase(name):
        if name == TABLES[1]:
            write(home / "privacy" / "hmac.key", "00")
            gone(home, "ab")

    with monkeypatch.context() as patch:
        before_each_table(patch, erase)
        ran = copy()
    assert ran.code == 1
    assert f"People were erased from {home} while its tables were copied" in ran.err[0]
    assert counts(other) == {TABLES[0]: 1}

    assert copy().code == 0
    assert known(other) == {"ab": "2026-01-01"}


@pytest.mark.long
def test_a_bucket_comes_with_the_home_that_knows_who_was_erased(
    lakehouse: Lakehouse, aws_settings: Settings, home: Path, other: Path, monkeypatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws_settings.endpoint_url or "")
    made(Catalog.of(aws_settings), "audit.gdpr_actions", 1, 2)

    ran = lakehouse("copy", "s3://lake", str(other))
    assert ran.code == 1
    assert f"records 2 actions of erasures, and {home}/privacy has no hmac.key" in ran.err[0]
    assert counts(other) == {}

    write(home / "privacy" / "hmac.key", "00")
    assert lakehouse("copy", "s3://lake", str(other)).code == 0


@pytest.mark.long
def test_tables_are_as_they_were_at_one_moment(copy, tables, other, monkeypatch):
    """Else a table would say that it was computed from a snapshot that is not there."""
    before_each_table(monkeypatch, lambda _: append(tables, TABLES[2], 9))
    assert copy().code == 0

    assert counts(other)[TABLES[2]] == 3
