"""The files of a new feed: Python as somebody would write it, that declares what it says."""

import csv
import sys

import pytest

from lakehouse.errors import UsageError
from lakehouse.iceberg.evolve.planning import plan
from lakehouse.iceberg.write.row_versions import _FILE_ORDER
from lakehouse.scaffolding.table_text import source_of, table_text
from lakehouse.scaffolding.write_files import write_files
from lakehouse.tables.table import Merge, Overwrite
from lakehouse_tests.docs.markdown import ROOT
from lakehouse_tests.scaffolding import kinds
from lakehouse_tests.scaffolding.kinds import put
from lakehouse_tests.scaffolding.packages import (
    begin_feed,
    complaints,
    empty_project,
    imported,
)

pytestmark = pytest.mark.unit


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """Begin a feed from one file, and import its tables."""
    monkeypatch.syspath_prepend(tmp_path)

    def begin(name: str, text: str):
        project = empty_project(tmp_path, f"shop_{name}")
        begin_feed(project, name, put(tmp_path, f"{name}.csv", text), time_zone="Europe/Berlin")
        return project, *(
            imported(project, table) for table in (f"bronze.{name}_raw", f"silver.{name}")
        )

    yield begin
    for name in [name for name in sys.modules if name.startswith("shop_")]:
        del sys.modules[name]


@pytest.mark.parametrize("kind", kinds.READABLE)
def test_what_is_written_declares_two_tables_and_is_formatted(begun, tmp_path, kind):
    project, bronze, silver = begun(kind, kinds.READABLE[kind])

    assert plan(bronze.TABLE, None).describe()
    assert plan(silver.TABLE, None).describe()
    assert complaints(project.assets, project.root) == ""
    assert complaints(project.tests, project.root) == ""


@pytest.mark.parametrize("kind", ["people", "day_first", "commas"])
def test_lines_are_as_long_as_the_project_says(tmp_path, monkeypatch, kind):
    put(tmp_path, "pyproject.toml", "[tool.ruff]\nline-length = 96\n")
    project = empty_project(tmp_path, "wide")
    begin_feed(project, kind, put(tmp_path, f"{kind}.csv", kinds.READABLE[kind]))

    assert project.line_length == 96
    assert complaints(project.assets, project.root, config=ROOT / "pyproject.toml") == ""


def test_a_key_without_days_is_merged_and_keeps_people_apart(begun):
    _, bronze, silver = begun("people", kinds.PEOPLE)

    assert silver.TABLE.write == Merge(on=["customer_no"])
    assert silver.TABLE.personal_columns == {"first_name", "e_mail", "Phone"}
    assert (bronze.TABLE.subject, silver.TABLE.subject) == ("Customer No", "customer_no")
    # By that name a person is found, and erased, in both.
    assert silver.TABLE.column("customer_no").renamed_from == ("Customer No",)
    assert silver.TABLE.column("e_mail").renamed_from == ("e-mail",)


def test_days_part_bronze_and_silver(begun):
    _, bronze, silver = begun("orders", kinds.ORDERS)

    assert bronze.TABLE.partitioning == ("ordered_day",)
    assert silver.TABLE.partitioning == ("days(ordered_day)",)
    assert silver.TABLE.windows.time_zone == "Europe/Berlin"
    assert silver.TABLE.versions.of == ("order_id",)


def test_what_was_delivered_last_is_the_same_with_days_and_without(begun):
    """A merge orders rows by these columns, and a table by days has to name them."""
    _, _, by_day = begun("orders", kinds.ORDERS)

    assert by_day.TABLE.versions.newest[:4] == _FILE_ORDER


def test_a_column_without_a_name_gets_one(begun):
    """Tools write the number of each row before it, and no name above."""
    _, bronze, silver = begun("numbered", kinds.NUMBERED)

    (first, *_) = bronze.FEED.declared_columns
    assert (first.name, first.header) == ("column_1", "")
    assert silver.TABLE.column("column_1").type == "int"


def test_a_column_that_is_called_as_one_of_our_own_gets_another_name(begun):
    _, bronze, silver = begun("own_names", kinds.OWN_NAMES)

    headers = {column.name: column.header for column in bronze.FEED.declared_columns}
    assert headers == {
        "line_no": None,
        "source_file": "_source_file",
        "deleted": "_DELETED",
        "_id": None,
    }
    assert {"source_file", "deleted", "id"} <= {*silver.TABLE.column_names}


def test_spaces_and_words_for_nothing_are_read_as_such_and_said(begun):
    """Strictly read, they are no number: each such row would be refused."""
    project, *_ = begun("blanks", kinds.BLANKS)

    text = project.table_path("silver.blanks").read_text(encoding="utf-8")
    assert 'expr(iso_date(blank_as_null("day"), "D.M.Y"))' in text
    assert 'expr(decimal_comma(blank_as_null("amount"), grouped=True))' in text
    assert 'expr(blank_as_null("count", "NA"))' in text
    said = " ".join(text.replace("#", "").split())
    assert "amount has spaces alone in 12 rows, read as nothing." in said
    assert "count has NA in 12 rows, read as nothing." in said


def test_a_moment_of_change_tells_the_newest_row_without_days_too(begun):
    """An export that is delivered late would take the place of a newer one."""
    project, _, silver = begun("changed", kinds.CHANGED)

    assert silver.TABLE.write == Merge(on=["item_id"])
    assert silver.TABLE.versions.newest == ("updated_at", *_FILE_ORDER, "_source_sha256")
    assert silver.TABLE.comment == "One row for each item_id, the newest by updated_at."
    text = project.table_path("silver.changed").read_text(encoding="utf-8")
    said = " ".join(text.replace("#", "").split())
    assert "Of repeated ones, the newest by updated_at counts." in said


def test_a_name_with_dots_is_another_one_in_bronze(begun):
    project, bronze, silver = begun("dotted", kinds.DOTTED)

    columns = bronze.FEED.declared_columns
    assert [(column.name, column.header) for column in columns] == [
        ("beleg_nr", "Beleg-Nr."),
        ("Datum", None),
        ("column_3", "Pos."),
        ("kd_nr", "Kd.Nr."),
        ("Betrag EUR", None),
        ("pos", None),
    ]
    assert silver.TABLE.column("betrag_eur").renamed_from == ("Betrag EUR",)
    assert not silver.TABLE.column("kd_nr").renamed_from
    assert (bronze.TABLE.subject, silver.TABLE.subject) == ("kd_nr", "kd_nr")
    text = (project.tests / "dotted_sample.csv").read_text(encoding="utf-8")
    assert text.startswith("Beleg-Nr.,Datum,Pos.,Kd.Nr.,Betrag EUR,pos\n")


def test_renamed_columns_say_so_and_are_read_by_their_types(begun):
    """A row that belongs to no day is then seen with all that was delivered."""
    _, _, silver = begun("people", kinds.PEOPLE)

    assert silver.TABLE.column("grosse").renamed_from == ("Größe",)
    assert "castable_grosse" in {rule.name for rule in silver.TABLE.rules}


def test_without_a_key_and_days_all_lines_are_kept(begun):
    _, _, silver = begun("ambiguous", kinds.AMBIGUOUS)

    assert silver.TABLE.write == Overwrite()
    assert silver.TABLE.versions.of == ("_source_file", "_source_sha256", "_source_row")


def test_what_was_guessed_and_what_cannot_be_told_stands_in_comments(begun):
    project, _, _ = begun("ambiguous", kinds.AMBIGUOUS)

    text = project.table_path("silver.ambiguous").read_text(encoding="utf-8")
    assert "# Guessed from 40 rows of 1 file; confirm or correct" in text
    assert "# - due: dates of which the day or the month may come first." in text


def test_nobody_is_to_be_known_in_the_sample(begun):
    project, _, _ = begun("people", kinds.PEOPLE)

    text = (project.tests / "people_sample.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert 5 <= len(rows) <= 12
    assert rows[0]["e-mail"] == "person1@example.com"
    assert rows[0]["Customer No"] == "1"
    assert not any(value in text for value in ("ada", "Ada", "7946", "5000"))


def test_the_sample_has_each_way_in_which_values_are_written(tmp_path):
    project = empty_project(tmp_path, "mixed")
    paths = [
        put(tmp_path, "a.csv", kinds.DAY_FIRST),
        put(tmp_path, "b.csv", kinds.ISO_DAYS),
    ]
    begin_feed(project, "mixed", *paths)

    text = (project.tests / "mixed_sample.csv").read_text(encoding="utf-8")
    assert ".2025," in text
    assert ",2025-" in text


def test_the_same_again_writes_nothing_and_carries_on_what_was_cut_short(tmp_path):
    project = empty_project(tmp_path, "again")
    path = put(tmp_path, "orders.csv", kinds.ORDERS)
    written = begin_feed(project, "orders", path)
    assert begin_feed(project, "orders", path) == []

    written[1].unlink()
    assert begin_feed(project, "orders", path) == [written[1]]


def test_a_file_that_was_changed_is_not_overwritten_and_no_other_is_written(tmp_path):
    project = empty_project(tmp_path, "changed")
    path = put(tmp_path, "orders.csv", kinds.ORDERS)
    *_, silver, test, _ = begin_feed(project, "orders", path)
    silver.write_text("# mine\n")
    test.unlink()

    with pytest.raises(UsageError, match=r"silver/orders\.py is already there"):
        begin_feed(project, "orders", path)
    assert silver.read_text() == "# mine\n"
    assert not test.exists()


def test_a_folder_that_is_no_package_is_named(tmp_path):
    from lakehouse.scaffolding.assets_folder import assets_folder_of

    with pytest.raises(UsageError, match=r"has no __init__\.py"):
        assets_folder_of(tmp_path)


@pytest.mark.parametrize("kind", ["orders", "people", "ambiguous", "commas"])
def test_a_table_is_begun_from_another_one(begun, kind):
    project, _, silver = begun(kind, kinds.READABLE[kind])
    name = f"gold.{kind}_report"
    text = table_text(
        name, source_of([silver], silver.TABLE), project.package, project.line_length
    )
    write_files(project.with_packages({project.table_path(name): text}))
    gold = imported(project, name)

    assert plan(gold.TABLE, None).describe()
    assert complaints(project.assets, project.root) == ""
    assert not gold.TABLE.personal_columns


def test_days_are_begun_as_sums_of_each(begun):
    _, _, silver = begun("orders", kinds.ORDERS)
    text = table_text("gold.days", source_of([silver], silver.TABLE), "shop", 96)

    assert 'Column("amount", "decimal(20,2)", "Sum of amount."),' in text
    assert 'expr("sum(amount) AS amount")' in text
    assert 'write=by_day("ordered_day", like=ORDERS),' in text
    assert "customer_id" not in text
