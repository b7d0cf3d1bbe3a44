"""The command that shows sample rows unmasked is valid in a shell."""

import shlex

import pytest

from lakehouse.orchestration.asset_checks import in_clear

pytestmark = pytest.mark.unit


def rows(file: str | None, *numbers: int | None) -> list[dict[str, object]]:
    return [
        {"_source_file": file, "_source_row": number, "id": "masked:0"} for number in numbers
    ]


def test_the_rows_of_the_first_file_are_named() -> None:
    assert (
        in_clear([*rows("a.csv", 9, 2), *rows("b.csv", 1)], "silver.x_quarantine")
        == "lakehouse sql \"SELECT * FROM silver.x_quarantine WHERE _source_file = 'a.csv' AND"
        ' _source_row IN (2, 9)"'
    )


@pytest.mark.parametrize(
    "file", ["a b.csv", 'a"b.csv', "a'b.csv", "$(id).csv", "a\\b.csv", "`id`.csv"]
)
def test_a_shell_takes_it_as_it_is(file: str) -> None:
    program, command, query = shlex.split(str(in_clear(rows(file, 7), "silver.x")))
    escaped = file.replace("\\", "\\\\").replace("'", "\\'")
    assert (program, command) == ("lakehouse", "sql")
    assert (
        query == f"SELECT * FROM silver.x WHERE _source_file = '{escaped}' AND _source_row = 7"
    )


def test_there_is_none_where_rows_have_no_source() -> None:
    assert (
        in_clear(rows(None, 1), "silver.x")
        is in_clear(rows("a", None), "silver.x")
        is in_clear([], "x")
        is None
    )
    assert in_clear(rows("a", 1), "") is None
