"""The files of a new feed: formatted Python, with the guessed declarations."""

import csv
import sys

import pytest

from lakehouse.errors import UsageError
from lakehouse.iceberg.evolve.planning import plan
from lakehouse.iceberg.write.row_versions import _FILE_ORDER
from lakehouse.scaffolding.begin_project import write_files
from lakehouse.scaffolding.table_text import source_of, table_text
from lakehouse.tables.table import Merge, Overwrite
from lakehouse_tests.docs.markdown import ROOT
from lakehouse_tests.scaffolding import kinds
from lakehouse_tests.scaffolding.kinds import put
from lakehouse_tests.scaffolding.packages import begin_feed, complaints, empty_project, imported

pytestmark = pytest.mark.unit


@pytest.fixture
def new_feed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)

    def declare(name: str, text: str):
        project = empty_project(tmp_path, f"shop_{name}")
        begin_feed(project, name, put(tmp_path, f"{name}.csv", text), time_zone="Europe/Berlin")
        return project, *(
            imported(project, table) for table in (f"bronze.{name}_raw", f"silver.{name}")
        )

    yield declare
    for name in [name for name in sys.modules if name.startswith("shop_")]:
        del sys.modules[name]


@pytest.mark.parametrize("kind", kinds.READABLE)
def test_the_files_declare_two_tables_and_are_formatted(new_feed, tmp_path, kind):
    project, bronze, silver = new_feed(kind, kinds.READABLE[kind])

    assert plan(bronze.TABLE, None).describe()
    assert plan(silver.TABLE, None).describe()
    assert complaints(project.assets, project.root) == ""
    assert complaints(project.tests, project.root) == ""


def test_lines_have_the_length_of_the_project(tmp_path):
    put(tmp_path, "pyproject.toml", "[tool.ruff]\nline-length = 96\n")
    project = empty_project(tmp_path, "wide")
    begin_feed(project, "people", put(tmp_path, "people.csv", kinds.PEOPLE))

    assert complaints(project.assets, project.root, config=ROOT / "pyproject.toml") == ""


def test_a_key_without_days_is_merged(new_feed):
    _, bronze, silver = new_feed("people", kinds.PEOPLE)

    assert silver.TABLE.write == Merge(on=["customer_no"])
    assert silver.TABLE.personal_columns == {"first_name", "e_mail", "Phone"}
    assert (bronze.TABLE.subject, silver.TABLE.subject) == ("Customer No", "customer_no")
    assert silver.TABLE.column("customer_no").renamed_from == ("Customer No",)
    assert silver.TABLE.column("grosse").renamed_from == ("Größe",)
    assert "castable_grosse" in {rule.name for rule in silver.TABLE.rules}


def test_days_partition_bronze_and_silver(new_feed):
    _, bronze, silver = new_feed("orders", kinds.ORDERS)

    assert bronze.TABLE.partitioning == ("ordered_day",)
    assert silver.TABLE.partitioning == ("days(ordered_day)",)
    assert silver.TABLE.windows.time_zone == "Europe/Berlin"
    assert silver.TABLE.versions.of == ("order_id",)


def test_the_newest_delivery_is_the_same_with_and_without_days(new_feed):
    _, _, by_day = new_feed("orders", kinds.ORDERS)

    assert by_day.TABLE.versions.newest[:4] == _FILE_ORDER


def test_a_column_without_a_name_gets_one(new_feed):
    _, bronze, silver = new_feed("numbered", kinds.NUMBERED)

    (first, *_) = bronze.FEED.declared_columns
    assert (first.name, first.header) == ("column_1", "")
    assert silver.TABLE.column("column_1").type == "int"


def test_a_column_with_a_reserved_name_is_renamed(new_feed):
    _, bronze, silver = new_feed("own_names", kinds.OWN_NAMES)

    headers = {column.name: column.header for column in bronze.FEED.declared_columns}
    assert headers == {
        "line_no": None,
        "source_file": "_source_file",
        "deleted": "_DELETED",
        "_id": None,
    }
    assert {"source_file", "deleted", "id"} <= {*silver.TABLE.column_names}


def test_spaces_and_words_for_missing_values_are_null(new_feed):
    project, *_ = new_feed("blanks", kinds.BLANKS)

    text = project.table_path("silver.blanks").read_text(encoding="utf-8")
    assert 'expr(iso_date(blank_as_null("day"), "D.M.Y"))' in text
    assert 'expr(decimal_comma(blank_as_null("amount"), grouped=True))' in text
    assert 'expr(blank_as_null("count", "NA"))' in text
    comment = " ".join(text.replace("#", "").split())
    assert "amount has blank text, read as NULL." in comment
    assert "count has NA, read as NULL." in comment


def test_a_time_of_change_selects_the_newest_row(new_feed):
    project, _, silver = new_feed("changed", kinds.CHANGED)

    assert silver.TABLE.write == Merge(on=["item_id"])
    assert silver.TABLE.versions.newest == ("updated_at", *_FILE_ORDER, "_source_sha256")
    assert silver.TABLE.comment == "One row for each item_id, the newest by updated_at."
    text = project.table_path("silver.changed").read_text(encoding="utf-8")
    comment = " ".join(text.replace("#", "").split())
    assert "Of repeated ones, the newest by updated_at counts." in comment


def test_a_name_with_dots_is_renamed_in_bronze(new_feed):
    project, bronze, silver = new_feed("dotted", kinds.DOTTED)

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


def test_without_a_key_all_lines_are_rows(new_feed):
    _, _, silver = new_feed("ambiguous", kinds.AMBIGUOUS)

    assert silver.TABLE.write == Overwrite()
    assert silver.TABLE.versions.of == ("_source_file", "_source_sha256", "_source_row")


def test_guesses_and_unclear_columns_are_comments(new_feed):
    project, _, _ = new_feed("ambiguous", kinds.AMBIGUOUS)

    text = project.table_path("silver.ambiguous").read_text(encoding="utf-8")
    assert "# Guessed from 40 rows of 1 file; confirm or correct" in text
    assert (
        "# - due: dates in several forms, or of which the day or the month may come first."
        in text
    )


def test_personal_values_of_the_sample_are_replaced(new_feed):
    project, _, _ = new_feed("people", kinds.PEOPLE)

    text = (project.tests / "people_sample.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == 5
    assert rows[0]["e-mail"] == "person1@example.com"
    assert rows[0]["Customer No"] == "1"
    assert not any(value in text for value in ("ada", "Ada", "7946", "5000"))


def test_a_second_call_writes_only_missing_files(tmp_path):
    project = empty_project(tmp_path, "again")
    path = put(tmp_path, "orders.csv", kinds.ORDERS)
    written = begin_feed(project, "orders", path)
    assert begin_feed(project, "orders", path) == []

    written[1].unlink()
    assert begin_feed(project, "orders", path) == [written[1]]


def test_a_changed_file_is_not_overwritten(tmp_path):
    project = empty_project(tmp_path, "changed")
    path = put(tmp_path, "orders.csv", kinds.ORDERS)
    *_, silver, test, _ = begin_feed(project, "orders", path)
    silver.write_text("# mine\n")
    test.unlink()

    with pytest.raises(UsageError, match=r"silver/orders\.py is already there"):
        begin_feed(project, "orders", path)
    assert silver.read_text() == "# mine\n"
    assert not test.exists()


def test_a_folder_must_be_a_package(tmp_path):
    from lakehouse.scaffolding.assets_package import assets_folder_of

    with pytest.raises(UsageError, match=r"has no __init__\.py"):
        assets_folder_of(tmp_path)


@pytest.mark.parametrize("kind", ["orders", "people", "ambiguous", "commas"])
def test_a_table_is_computed_from_another(new_feed, kind):
    project, _, silver = new_feed(kind, kinds.READABLE[kind])
    name = f"gold.{kind}_report"
    text = table_text(name, source_of([silver], silver.TABLE))
    write_files(project.completed({project.table_path(name): text}))
    gold = imported(project, name)

    assert plan(gold.TABLE, None).describe()
    assert complaints(project.assets, project.root) == ""
    assert not gold.TABLE.personal_columns


def test_a_table_by_days_is_summed(new_feed):
    project, _, silver = new_feed("orders", kinds.ORDERS)
    path = project.table_path("gold.days")
    source = source_of([silver], silver.TABLE)
    text = project.completed({path: table_text("gold.days", source)})[path]

    assert 'Column("amount", "decimal(20,2)", "Sum of amount."),' in text
    assert 'expr("sum(amount) AS amount")' in text
    assert 'write=by_day("ordered_day", like=ORDERS),' in text
    assert "customer_id" not in text
