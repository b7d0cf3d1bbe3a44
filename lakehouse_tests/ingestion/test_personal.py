"""Personal values are not in the reason of a rejected file, also without a header."""

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


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("customer_id,email,regiom", "unknown column no. 3: found a header with 'customer_id'"),
        (
            "customer_id,mail",
            "missing column 'email': found a header with 'customer_id', no. 2; expected",
        ),
    ],
)
def test_an_undeclared_column_is_shown_by_its_position(inbox_of, header, reason) -> None:
    inbox = inbox_of(CUSTOMERS)
    inbox.put("c.csv", f"{header}\n")

    assert reason in inbox.look().reason


def test_the_staging_folder_is_closed_to_others(inbox_of) -> None:
    inbox = inbox_of(CUSTOMERS)
    inbox.look()

    assert (inbox.store.root / "staging" / "customers").stat().st_mode & 0o077 == 0
