"""Erasure finds a person by field id and by value, whatever the name and type of a column."""

import shutil
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from unicodedata import normalize

import pytest

from lakehouse.assets.audit.gdpr_actions import TABLE as AUDIT
from lakehouse.errors import CatalogDamaged, LakehouseError, UsageError
from lakehouse.iceberg.upkeep import expire_snapshots
from lakehouse.orchestration.deployment import open_engine
from lakehouse.privacy.erasure import How
from lakehouse.privacy.erasure_search import held_columns, search_again
from lakehouse.privacy.identity import Named
from lakehouse.privacy.requests import allow_people
from lakehouse.privacy.run_erasure import erase
from lakehouse.privacy.suppressed_people import read_audited
from lakehouse.privacy.verifier.roots import FolderRoot
from lakehouse.privacy.verifier.search import by_hmacs, by_values, search
from lakehouse.tables.person import Person, person_hmac
from lakehouse.tables.table import Column
from lakehouse_tests.privacy.an_erasure import expire_without_spark
from lakehouse_tests.privacy.declared_tables import Lakehouse
from lakehouse_tests.privacy.small_lakehouse import declared, personal

pytestmark = pytest.mark.unit


@pytest.fixture
def lakehouse(engine_without_spark, settings, monkeypatch):
    monkeypatch.setattr(expire_snapshots, "_call_procedure", expire_without_spark)
    return lambda *tables: Lakehouse(engine_without_spark, settings, *tables)


BRONZE = declared("bronze.orders", "customer_id", "amount", subject="customer_id")
SILVER = declared(
    "silver.orders", Column("customer_id", "decimal(11,2)"), "amount", subject="customer_id"
)
GOLD = declared("gold.orders", Column("customer_id", "bigint"), "amount", subject="customer_id")


@pytest.mark.long
@pytest.mark.parametrize("named", ["17", "17.0", " +017.00 "])
def test_a_person_is_erased_in_every_numeric_form(lakehouse, named):
    home = lakehouse(BRONZE, SILVER, GOLD)
    home.people.add(BRONZE, ("17.0", "a"), ("17", "b"), ("17.00", "c"), ("170", "d"))
    home.people.add(SILVER, (Decimal("17.00"), "a"), (Decimal("17.50"), "d"))
    home.people.add(GOLD, (17, "a"), (170, "d"))

    erasure = home.erase("customer_id", named)

    assert erasure.request.state == "verified"
    for table in (BRONZE, SILVER, GOLD):
        assert [row["amount"] for row in home.people.rows(table)] == ["d"]


NAMES = [("Mitglied-Nr", "E-Mail"), ("Member No", "E Mail"), ("1st_id", "élan"), ("№", "почта")]


@pytest.mark.long
@pytest.mark.parametrize(("key", "mail"), NAMES, ids=[key for key, _ in NAMES])
def test_a_file_that_came_back_is_found_by_hash(lakehouse, tmp_path, key, mail):
    members = declared("bronze.members", key, personal(mail), "fee", subject=key)
    home = lakehouse(members)
    home.people.add(members, ("1000105", "A1@mail.example", "1"))
    home.people.add(members, ("", "a1@mail.example", "2"))
    home.people.add(members, ("1000106", "a2@mail.example", "3"))
    copies = [shutil.copy(file, tmp_path) for file in home.data_files(members)]
    folder = home.data_files(members)[0].parent

    assert home.erase(key, "1000105").request.state == "verified"
    for copy in copies:
        shutil.copy(copy, folder)
    report = search_again(home.erasable, "R-1")

    kinds = {(finding.kind, finding.column) for finding in report.findings}
    assert kinds == {("id", key), ("personal value", mail)}
    assert len({finding.file for finding in report.findings}) == 2


@pytest.mark.long
def test_a_partition_by_an_escaped_column_is_found(lakehouse, tmp_path):
    members = declared(
        "bronze.members", "Mitglied-Nr", "fee", subject="Mitglied-Nr", partitioning=["fee"]
    )
    home = lakehouse(members)
    home.people.add(members, ("1000105", "1"))

    assert home.erase("Mitglied-Nr", "1000105").request.state == "verified"


def test_a_value_of_any_type_is_found_by_field_id(lakehouse, settings):
    values = {
        "Mitglied-Nr": ("decimal(11,2)", Decimal("17.00"), "17"),
        "born": ("date", date(1980, 2, 29), "1980-02-29"),
        "seen": ("timestamp", datetime(2026, 1, 2, 3, 4, 5), "2026-01-02 03:04:05"),
        "phone": ("double", 4915.0, "4915.0"),
        "plot": ("decimal(9,2)", Decimal("12.50"), "12.50"),
        "contacts": ("array<struct<mail: string>>", [{"mail": "a@b.c"}], "a@b.c"),
    }
    columns = [
        Column(name, kind, personal=name != "Mitglied-Nr")
        for name, (kind, _, _) in values.items()
    ]
    members = declared("bronze.members", *columns, subject="Mitglied-Nr")
    home = lakehouse(members)
    home.people.add(members, tuple(value for _, value, _ in values.values()))
    texts = {name: frozenset({text}) for name, (_, _, text) in values.items()}
    person = Person("Mitglied-Nr", texts.pop("Mitglied-Nr"), texts)
    hmacs = [person_hmac(b"k", name, text) for name, (_, _, text) in values.items()]
    held = held_columns(home.erasable, {members.name: []})

    root = FolderRoot(settings.home)
    reports = [
        search([root], by_values([person], held)),
        search([root], by_hmacs(b"k", hmacs, held)),
    ]

    for report in reports:
        found = {one.column for one in report.findings if "/metadata/" not in one.file}
        assert {column.partition(".")[0] for column in found} == {*values}


@pytest.mark.long
def test_rows_of_an_erased_person_land_again_once_they_are_allowed(lakehouse, settings):
    home = lakehouse(GOLD)
    home.people.add(GOLD, (17, "a"), (170, "d"))
    home.erase("customer_id", "17")
    assert read_audited(settings).erasure_time(["customer_id"], "17.0") is not None

    with pytest.raises(UsageError, match="not on the list"):
        allow_people(
            home.erasable,
            [Named("customer_id", "17"), Named("customer_id", "18")],
            by="me",
            why="?",
        )
    assert read_audited(settings).erasure_time(["customer_id"], "17") is not None
    allow_people(home.erasable, [Named("customer_id", "17.0")], by="me", why="new contract")

    assert read_audited(settings).erasure_time(["customer_id"], "17") is None
    listed = (settings.home / "privacy" / "gone.json").read_text()
    assert '"allowed_by":"me"' in listed.replace(" ", "")
    assert "new contract" in listed
    rows = home.people.engine.catalog.load(AUDIT.name).scan().to_arrow().to_pylist()
    assert {row["who"] for row in rows if row["action"] == "allowed_again"} == {"me"}


@pytest.mark.scenario
def test_a_lost_or_older_list_of_erased_people_stops_computation(lakehouse, settings):
    home = lakehouse(GOLD)
    home.people.add(GOLD, (17, "a"), (18, "b"), (170, "d"))
    home.erase("customer_id", "17")
    list_file = settings.home / "privacy" / "gone.json"
    older = list_file.read_bytes()
    erase(home.erasable, "R-2", [Named("customer_id", "18")], How("me", now=True))
    read_audited(settings)

    list_file.write_bytes(older)
    with pytest.raises(LakehouseError, match=r"gone\.json is older: .* request R-2"):
        read_audited(settings)
    shutil.rmtree(settings.home / "privacy")
    with pytest.raises(LakehouseError, match=r"gone\.json is missing: .* request R-2"):
        read_audited(settings)


def test_a_copied_home_cannot_change_the_tables_of_the_original(lakehouse, settings, tmp_path):
    home = lakehouse(GOLD)
    home.people.add(GOLD, (17, "a"))
    open_engine(settings)
    copy = tmp_path / "copy"
    shutil.copytree(settings.home, copy)

    with pytest.raises(CatalogDamaged, match=r"was moved or copied: .* gold\.orders"):
        open_engine(replace(settings, home=copy))


@pytest.mark.parametrize("named", ["ada@mail.example", "ADA@mail.example", "Ada", "Zo\u00eb"])
def test_without_a_subject_a_value_is_erased_in_any_case(lakehouse, named):
    letters = declared("bronze.letters", personal("email"), "text", no_subject="By address.")
    home = lakehouse(letters)
    forms = (named.lower(), f" {named.upper()}", normalize("NFD", named.title()))
    home.people.add(letters, *((form, "a") for form in forms), ("bob@mail.example", "b"))

    erasure = home.erase("email", named)

    assert erasure.request.state == "verified"
    assert [row["text"] for row in home.people.rows(letters)] == ["b"]
    home.people.add(letters, (named.swapcase(), "c"))
    for again in ([], [Named("email", named)]):
        assert {"email"} <= {
            one.column for one in search_again(home.erasable, "R-1", again).findings
        }
