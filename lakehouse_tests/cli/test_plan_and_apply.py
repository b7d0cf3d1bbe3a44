"""`lakehouse plan` and `apply`: what is declared, against what the tables are."""

from dataclasses import replace

import pytest

from lakehouse.definitions import PROJECT
from lakehouse.tables.table import Column, IcebergTable, Overwrite

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

FRUITS = IcebergTable(
    name="silver.fruit_colours",
    comment="What colour a fruit has.",
    columns=[Column("fruit", "string"), Column("colour", "string"), Column("grams", "bigint")],
    write=Overwrite(),
)
OTHER = replace(FRUITS, name="silver.other")


@pytest.fixture
def declare(monkeypatch):
    """Let the lakehouse declare these tables and no others."""

    def these(*tables: IcebergTable) -> None:
        monkeypatch.setitem(vars(PROJECT), "tables", {table.name: table for table in tables})

    return these


@pytest.fixture
def made(lakehouse, declare):
    """Two declared tables that are as declared."""
    declare(FRUITS, OTHER)
    assert lakehouse("apply").code == 0


def renamed(table: IcebergTable) -> IcebergTable:
    return replace(
        table, columns=[Column("name", "string", renamed_from=["fruit"]), *table.columns[1:]]
    )


def narrowed(table: IcebergTable) -> IcebergTable:
    return replace(table, columns=[*table.columns[:2], Column("grams", "int")])


def test_a_table_that_is_not_there_is_planned_and_not_made(lakehouse, declare):
    declare(FRUITS)
    ran = lakehouse("plan")
    assert (ran.code, ran.out) == (
        0,
        ["silver.fruit_colours:", "  create the table with 3 columns"],
    )
    assert lakehouse("plan").out == ran.out


def test_apply_says_what_it_did_and_then_nothing_is_left(lakehouse, declare):
    declare(FRUITS)
    ran = lakehouse("apply")
    assert (ran.code, ran.out) == (
        0,
        ["silver.fruit_colours:", "  done: create the table with 3 columns"],
    )
    assert lakehouse("plan").out == ["silver.fruit_colours: as declared"]
    assert lakehouse("apply").out == ["silver.fruit_colours: as declared"]


def test_a_change_that_waits_for_apply_is_marked(lakehouse, made, declare):
    declare(renamed(FRUITS))
    assert lakehouse("plan").out[1] == "  rename column fruit to name (by lakehouse apply)"
    lakehouse("apply", "lakehouse.silver.fruit_colours")
    assert lakehouse("plan", "--check").code == 0


def test_check_fails_where_something_is_pending(lakehouse, made, declare):
    assert lakehouse("plan", "--check").code == 0
    declare(renamed(FRUITS), OTHER)
    ran = lakehouse("plan", "--check")
    assert ran.code == 1
    assert ran.err == [
        "lakehouse: 1 of 2 tables are not as declared: silver.fruit_colours. `lakehouse apply`"
        " makes the changes."
    ]


def test_a_denied_change_is_said_and_the_others_are_made(lakehouse, made, declare):
    declare(narrowed(FRUITS), renamed(OTHER))
    assert any(
        line.startswith("  denied: ") and "bigint" in line for line in lakehouse("plan").out
    )
    ran = lakehouse("apply")
    assert ran.code == 1
    assert len(ran.err) == 1
    assert "silver.fruit_colours" in ran.err[0]
    assert "grams" in ran.err[0]
    assert ran.out == ["silver.other:", "  done: rename column fruit to name"]


def test_functions_are_called_and_those_that_do_not_fit_are_named(lakehouse, declare):
    raw, fruits = (PROJECT.tables[name] for name in ("bronze.raw_fruits", "silver.fruits"))
    ran = lakehouse("plan", raw.name, fruits.name, "--functions")
    assert (ran.code, ran.out[-1]) == (0, "2 of 2 functions fit their tables")

    declare(raw, replace(fruits, columns=[*fruits.columns, Column("colour", "string")]))
    ran = lakehouse("plan", "--functions")
    assert (ran.code, ran.out[-1]) == (1, "1 of 2 functions fit their tables")
    assert "silver.fruits: the frame lacks colour" in ran.err[-1]
