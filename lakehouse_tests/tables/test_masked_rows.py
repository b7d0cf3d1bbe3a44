"""What of rows about people is shown: what tells no person, or is shared by several; of other
values their shape.
"""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from lakehouse.tables.masking import PERSONS, READABLE, redacted
from lakehouse.tables.table import Append, Column, IcebergTable

pytestmark = pytest.mark.unit
ORDERS = IcebergTable(
    "silver.orders",
    "Orders.",
    [
        Column("customer_id", "string"),
        Column("status", "string"),
        Column("amount", "decimal(10,2)"),
        Column("ordered", "date"),
        Column("paid", "boolean"),
        Column("_source_file", "string"),
    ],
    write=Append(once_by=("_source_file",)),
    subject="customer_id",
)
SECRET = "jane@example.org"


def row(customer: str | None = "7", **values: Any) -> dict[str, Any]:
    return {"customer_id": customer, "status": "CANCELED", "amount": Decimal("1.50"), **values}


def shown(*rows: dict[str, Any], table: IcebergTable = ORDERS) -> dict[str, Any]:
    return redacted(b"key", table, rows)[0]


def test_the_subject_is_masked() -> None:
    assert str(shown(row("4711"))["customer_id"]).startswith("masked:")
    assert shown(row(None))["customer_id"] is None


def test_numbers_dates_booleans_and_the_source_are_shown() -> None:
    found = shown(row(ordered=date(2026, 1, 2), paid=True, _source_file="a.csv"))
    expected = {
        "amount": Decimal("1.50"),
        "ordered": date(2026, 1, 2),
        "paid": True,
        "_source_file": "a.csv",
    }
    assert found.items() >= expected.items()


def test_of_a_text_the_shape_is_shown() -> None:
    assert shown(row(status=SECRET))["status"] == "16 characters: letters, @, dot"


def test_where_rows_are_compared_texts_of_one_shape_are_told_apart() -> None:
    rows = [row(status=SECRET), row(status=SECRET), row(status=SECRET.upper())]
    one, same, other = (
        found["status"] for found in redacted(b"key", ORDERS, rows, is_compared=True)
    )
    assert one == same != other
    assert one.startswith("16 characters: letters, @, dot (masked:")


@pytest.mark.parametrize(
    ("persons", "said"), [(PERSONS, "CANCELED"), (PERSONS - 1, "8 characters: letters")]
)
def test_a_text_is_shown_that_several_persons_share(persons: int, said: str) -> None:
    assert (
        shown(*(row(str(person)) for person in range(persons)), row("1"), row(None))["status"]
        == said
    )


def test_a_delivered_text_is_shown_that_can_be_read_in_the_columns_type() -> None:
    assert shown(row(amount="12.5", **{READABLE: ["amount"]})) == shown(row()) | {
        "amount": "12.5"
    }
    assert shown(row(amount="12.5"))["amount"] == "4 characters: digits, dot"


def test_without_a_subject_persons_are_told_by_their_personal_values() -> None:
    table = replace(
        ORDERS,
        subject=None,
        columns=[replace(ORDERS.columns[0], personal=True), *ORDERS.columns[1:]],
    )
    assert (
        shown(*(row(str(person)) for person in range(PERSONS)), table=table)["status"]
        == "CANCELED"
    )
    assert shown(row(), table=table)["status"] == "8 characters: letters"


def test_rows_of_a_table_without_personal_data_are_shown_as_they_are() -> None:
    table = replace(ORDERS, subject=None)
    assert redacted(b"key", table, [row(status=SECRET)]) == [row(status=SECRET)]


@pytest.mark.parametrize(
    "text",
    [
        "1.204,5x",
        "31.02.2026",
        "APPROVD",
        "k.A.",
        "LED LAMP BLUE",
        "red wine",
        "12345678",
        "01/02/2026",
        "00.00.2026",
    ],
)
def test_who_asks_for_rows_sees_what_is_wrong_with_them(text: str) -> None:
    (found,) = redacted(b"key", ORDERS, [row("4711", status=text)], for_command=True)
    assert found["status"] == text
    assert found["customer_id"].startswith("masked:")


def test_a_date_that_stands_in_a_personal_column_is_shown_nowhere() -> None:
    born = replace(ORDERS, columns=[*ORDERS.columns, Column("born", "date", personal=True)])
    rows = [row("4711", status="1990-02-01", born="1990-02-01")]
    (found,) = redacted(b"key", born, rows, for_command=True)
    assert found["born"].startswith("masked:")
    assert found["status"].startswith("10 characters")


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        "call +44 20 7946 0123",
        "DE02 1203 0000 0000 2020 51",
        "Jane Doe",
        "Émile van den Berg",
        "Müller, Anna",
        "A. Müller",
        "123-45-6789",
        "4111 1111 1111 1111",
        '["Jane Doe"]',
        "order of c-4711",
        "x" * 101,
    ],
)
def test_what_looks_like_a_person_in_a_wrong_column_is_not_shown_to_who_asks(text: str) -> None:
    rows = [row("4711", status=text)]
    (found,) = redacted(b"key", ORDERS, rows, for_command=True)
    assert found["status"].startswith(f"{len(text)} characters")
