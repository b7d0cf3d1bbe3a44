"""Whatever rows Python's csv module writes come back equal through the staged Parquet."""

import csv
import gzip
import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakehouse.storage.object_store import LocalObjectStore
from lakehouse.tables.feed import Feed
from lakehouse_tests.examples import examples
from lakehouse_tests.ingestion.conftest import Inbox

NAMES = ["id", "fruit", "berry"]
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
awkward = st.sampled_from(
    [
        "",
        '"',
        '""',
        ",",
        "\n",
        "\r",
        "\r\n",
        '"\n',
        "\ufeff",
        " ",
        "NULL",
        "a,b",
        "\0",
        "\u2028",
    ]
)
rows = st.lists(st.lists(st.one_of(text, awkward), min_size=3, max_size=3), max_size=20)


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
@settings(
    max_examples=examples(20, 50),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    rows=rows,
    ending=st.sampled_from(["\n", "\r\n"]),
    order=st.permutations(NAMES),
    bom=st.booleans(),
)
def test_rows_come_back_as_they_were_written(rows, ending, order, bom, quoting, name) -> None:
    if (ending, quoting) == ("\n", csv.QUOTE_MINIMAL):
        # Before Python 3.13 the writer leaves a carriage return there without the quotes that
        # it needs.
        rows = [[value.replace("\r", "") for value in row] for row in rows]
    delivered = _written(rows, ending, order, quoting)
    raw = ("\ufeff" * bom + delivered).encode()

    with tempfile.TemporaryDirectory() as home:
        inbox = Inbox(
            LocalObjectStore(Path(home), settle_seconds=0),
            Feed("fruits", NAMES, "bronze.raw_fruits"),
        )
        inbox.put(name, gzip.compress(raw) if name.endswith(".gz") else raw)
        taken = inbox.look()

    assert taken.delivery.rejected == ()
    # Nobody can tell an empty string from NULL in a field without quotes.
    expected = [
        tuple(value or (None if quoting == csv.QUOTE_MINIMAL else "") for value in row)
        for row in rows
    ]
    assert taken.values(*order) == expected
    assert [row["_source_row"] for row in taken.rows] == list(range(1, len(rows) + 1))


def _written(rows: list[list[str]], ending: str, order: list[str], quoting: int) -> str:
    made = io.StringIO(newline="")
    writer = csv.writer(made, lineterminator=ending, quoting=quoting)
    writer.writerows([order, *rows])
    return made.getvalue()
