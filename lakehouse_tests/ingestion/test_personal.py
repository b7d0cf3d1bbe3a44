"""Values of people stay out of what is said of a file, also where its first row is no
header.
"""

import json
import logging

import pytest

from lakehouse_tests.ingestion.conftest import CUSTOMERS, files

SECRET = "jane@example.com"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(f"7,{SECRET},north\n8,x,south\n", id="no header"),
        pytest.param(f"7,{SECRET},{SECRET}\n", id="no header, a value twice"),
        pytest.param(
            f"region,{SECRET},7\n8,x,south\n",
            id="no header, and a value that is a column's name",
        ),
        pytest.param(
            f"customer_id,{SECRET},{SECRET}\n", id="no header, a name and a value twice"
        ),
        pytest.param(f"customer_id,email,{SECRET}\n", id="a value among the columns"),
        pytest.param(
            f"customer_id,email,{SECRET},{SECRET}\n", id="a value twice among the columns"
        ),
        pytest.param(f"customer_id,email\n7,{SECRET},north\n", id="a ragged row"),
        pytest.param(f"customer_id,email\n7,'{SECRET}\n{SECRET}", id="a ragged last row"),
        pytest.param(f'customer_id,email\n7,"{SECRET}\n', id="an open quote"),
        pytest.param(f'"customer_id,email\n7,{SECRET}\n', id="an open quote in the header"),
        pytest.param(f"customer_id,email\n7,{SECRET}".encode() + b"\xff\n", id="not UTF-8"),
        pytest.param(f"{SECRET},".encode() + b"\xff\n", id="not UTF-8 in the first row"),
    ],
)
def test_no_value_is_in_the_reason(inbox_of, caplog, content: str | bytes) -> None:
    inbox = inbox_of(CUSTOMERS)
    inbox.put("c.csv", content)

    with caplog.at_level(logging.DEBUG):
        (rejected,) = inbox.look().delivery.rejected

    (reason,) = (
        name for name in files(inbox.store, CUSTOMERS.rejected) if name.endswith(".json")
    )
    written = (inbox.store.root / CUSTOMERS.rejected / reason).read_text()
    assert json.loads(written)["reason"]
    assert (
        SECRET
        not in f"{written}{rejected}{rejected.why!r}{rejected.why.__context__}{caplog.text}"
    )


def test_an_undeclared_column_like_a_declared_one_is_named_where_the_header_is_proven(
    inbox_of,
) -> None:
    inbox = inbox_of(CUSTOMERS)
    inbox.put("c.csv", "customer_id,email,regiom\n")

    assert "unknown column 'regiom'" in inbox.look().reason


def test_any_other_undeclared_column_is_shown_by_its_shape(inbox_of) -> None:
    inbox = inbox_of(CUSTOMERS)
    inbox.put("c.csv", "customer_id,email,region,jane@example.com\n")

    assert (
        "unknown column no. 4 (16 characters: letters, @, dot): found a header with"
        in inbox.look().reason
    )


def test_an_undeclared_column_is_counted_where_the_header_is_not_proven(inbox_of) -> None:
    inbox = inbox_of(CUSTOMERS)
    inbox.put("c.csv", "customer_id,mail\n")

    assert (
        "missing column 'email': found a header with 'customer_id', 1 not declared"
        in inbox.look().reason
    )


def test_a_declared_column_that_is_written_otherwise_is_shown(inbox_of) -> None:
    inbox = inbox_of(CUSTOMERS)
    inbox.put("c.csv", "customer_id, E-Mail\n")

    assert (
        "missing column 'email': found a header with 'customer_id', ' E-Mail';"
        in inbox.look().reason
    )


def test_the_staging_folder_is_closed_to_others(inbox_of) -> None:
    inbox = inbox_of(CUSTOMERS)
    inbox.look()

    assert (inbox.store.root / "staging" / "customers").stat().st_mode & 0o077 == 0
