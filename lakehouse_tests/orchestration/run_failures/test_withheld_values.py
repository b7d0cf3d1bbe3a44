"""Errors of a table with personal data show their kind and place, and no row."""

import traceback
from dataclasses import replace

import dagster as dg
import pytest

from lakehouse.errors import ComputeFailed, FrameMismatch, SparkEnded
from lakehouse.orchestration.withheld_values import cause_without_data, values_withheld
from lakehouse.tables.table import Append, Column, IcebergTable

pytestmark = pytest.mark.unit
SECRET = "jane@example.org"
PEOPLE = IcebergTable(
    "silver.p", "People.", [Column("id", "bigint")], write=Append(once_by=("id",)), subject="id"
)


def raised(error: Exception, table: IcebergTable = PEOPLE) -> Exception:
    with pytest.raises(Exception) as caught, values_withheld(table):
        try:
            raise KeyError(SECRET)
        except KeyError as first:
            raise error from first
    return caught.value


def test_an_error_is_told_without_its_text_and_what_it_came_of() -> None:
    found = raised(ValueError(f"cannot read {SECRET}"))
    assert isinstance(found, ComputeFailed)
    assert str(found).startswith("silver.p could not be computed: ValueError.")
    assert SECRET not in "".join(traceback.format_exception(found))


def test_an_error_of_the_lakehouse_is_told_alone() -> None:
    found = raised(FrameMismatch("silver.p: column x is int."))
    assert isinstance(found, FrameMismatch) and SECRET not in "".join(
        traceback.format_exception(found)
    )


def test_of_a_table_without_personal_data_an_error_is_told_as_it_is() -> None:
    assert isinstance(raised(ValueError(SECRET), replace(PEOPLE, subject=None)), ValueError)


@pytest.mark.parametrize("subject", ["id", None])
def test_the_end_of_spark_is_told_in_one_line_whatever_the_table_holds(
    subject: str | None,
) -> None:
    stopped = RuntimeError(
        "Cannot call methods on a stopped SparkContext.\nIt was created"
        " at:\n\norg.X.main(X.scala)"
    )
    found = raised(stopped, replace(PEOPLE, subject=subject))
    assert isinstance(found, SparkEnded) and found.__suppress_context__
    assert str(found).startswith(
        "silver.p was not computed: Spark ended while this ran. What was published stays;"
    )
    assert "\n" not in str(found)


def test_a_failure_of_dagster_goes_through() -> None:
    assert isinstance(raised(dg.Failure("it was refused")), dg.Failure)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            NotADirectoryError(20, "Not a directory", "/a/b"),
            "NotADirectoryError: Not a directory: /a/b",
        ),
        (OSError(28, "whatever"), "OSError: No space left on device"),
        (OSError(SECRET), "OSError"),
        (NameError("name 'col' is not defined"), "NameError: name 'col' is not defined"),
        (KeyError(SECRET), "KeyError"),
    ],
)
def test_a_text_is_told_where_no_data_can_be_in_it(error: Exception, message: str) -> None:
    assert cause_without_data(error) == message
