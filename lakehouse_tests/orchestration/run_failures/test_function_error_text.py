"""The message of a failed table function: one line with table, function and cause."""

import re

import pytest

from lakehouse.errors import ComputeFailed, FrameMismatch
from lakehouse.orchestration.failure_texts import explained
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.table import Column, IcebergTable, Overwrite

TABLE = IcebergTable(
    "silver.t", "t", [Column("id", "int"), Column("name", "string")], write=Overwrite()
)
PEOPLE = IcebergTable(
    "silver.p", "p", [Column("email", "string", personal=True)], write=Overwrite()
)
HERE = "lakehouse_tests/orchestration/run_failures/test_function_error_text.py"


def first_line_of(function) -> int:
    return function.__code__.co_firstlineno


def failing():
    return {"a": 1}["ann@example.org"]


def error_of(function) -> Exception:
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError


@pytest.mark.unit
def test_the_line_that_failed_is_named():
    said = str(explained(TABLE, failing, error_of(failing)))
    line = first_line_of(failing) + 1
    assert said.startswith(
        f"silver.t: failing ({HERE}:{line}) failed: KeyError: 'ann@example.org'. Correct the"
        " function"
    )


@pytest.mark.unit
def test_of_a_table_with_personal_data_no_value_is_told():
    assert "failed: KeyError. Correct" in str(explained(PEOPLE, failing, error_of(failing)))


@pytest.mark.unit
@pytest.mark.parametrize(
    ("next_command", "said"),
    [("", "lakehouse retry silver.t"), ("lakehouse try silver.t", "lakehouse try silver.t")],
)
def test_what_to_run_once_a_query_is_corrected_depends_on_what_ran_it(next_command, said):
    wrong = ComputeFailed("silver.t: shop/t.sql:5: there is no column x.")

    assert str(explained(TABLE, failing, wrong, next_command)) == (
        f"silver.t: shop/t.sql:5: there is no column x. Correct the query, and run `{said}`."
    )


@pytest.mark.unit
def test_the_end_of_spark_is_no_fault_of_the_function_that_asked_it():
    def asking() -> None:
        raise RuntimeError("Cannot call methods on a stopped SparkContext.")

    assert explained(TABLE, asking, error_of(asking)) is None


@pytest.mark.unit
def test_a_frame_that_does_not_fit_is_said_to_come_of_the_function():
    said = explained(TABLE, failing, FrameMismatch("silver.t: the frame lacks id."))
    assert (
        str(said) == "silver.t: the frame lacks id. It is returned by failing"
        f" ({HERE}:{first_line_of(failing)})."
    )


def returns_nothing(engine):
    engine.sql("SELECT 1 AS id, 'x' AS name")


def has_a_typo(engine):
    return engine.sql("SELECT 1 AS id, 'x' AS name").select("id", "nam")


def cannot_be_read(engine):
    return engine.sql("SELECT CAST(v AS int) AS id, 'x' AS name FROM VALUES ('12a') AS t(v)")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("function", "said"),
    [
        (returns_nothing, "silver.t: its function returned None; expected a Spark DataFrame."),
        (
            has_a_typo,
            "name `nam` cannot be resolved. Did you mean one of the following? [`name`, `id`]",
        ),
        (cannot_be_read, "The value '12a' of the type"),
    ],
)
def test_a_run_fails_with_one_line(build, embedded_engine, function, said):
    def t():
        return function(embedded_engine)

    result = build(iceberg_asset(TABLE)(t))

    (message,) = result.messages
    assert said in message
    assert re.search(rf"{re.escape(HERE)}:\d+", message)
    assert "\n" not in message
    assert "Project" not in message and "SQLSTATE" not in message and "== " not in message
