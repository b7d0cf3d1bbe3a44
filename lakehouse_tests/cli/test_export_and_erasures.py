"""`lakehouse export` and `lakehouse erasures`; no JVM."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from lakehouse.definitions import TABLES
from lakehouse.iceberg.evolve.planning import create_table
from lakehouse.orchestration.deployment import open_engine
from lakehouse.privacy.identity import Named
from lakehouse.privacy.requests import Unreachable, change_request, open_request
from lakehouse.settings import Settings
from lakehouse_tests.cli.conftest import Lakehouse
from lakehouse_tests.cli.outcomes import records

pytestmark = pytest.mark.unit

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def delivered(settings: Settings) -> str:
    """The bronze table of transactions with two rows, made without a JVM."""
    raw = TABLES["bronze.bnpl_transactions_raw"]
    engine = open_engine(settings)
    create_table(engine, raw)
    table = engine.catalog.load(raw.name)
    schema = table.schema().as_arrow()
    rows = []
    for customer, email in ((" 0123 ", "a@example.org"), ("124", "b@example.org")):
        row = dict.fromkeys(schema.names)
        row |= {"customer_id": customer, "customer_email": email, "_source_file": "a.csv"}
        row |= {"_source_sha256": "0", "_source_row": 1}
        row |= {"_source_modified_at": NOW, "_ingested_at": NOW}
        rows.append(row)
    table.append(pa.Table.from_pylist(rows, schema))
    return raw.name


@pytest.mark.parametrize("person", ["customer_id=123", "customer_email=A@example.org"])
def test_export_prints_each_row_with_its_table(lakehouse, delivered, person):
    ran = lakehouse("export", person)
    ((table, row),) = (tuple(held.values()) for held in records(ran))
    assert (table, row["customer_id"], row["_source_file"]) == (delivered, " 0123 ", "a.csv")
    assert ran.code == 0
    assert ran.err == [f"lakehouse: 1 row; looked at 1 table: {delivered}."]


@pytest.mark.parametrize(
    ("argument", "typed"),
    [("customer_id=-", "123\n\n"), ("-", "customer_id=123\n")],
)
def test_a_value_may_come_from_standard_input(
    lakehouse, delivered, argument, typed, monkeypatch
):
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert len(records(lakehouse("export", argument))) == 1


def test_export_writes_a_file_that_nobody_else_may_read(lakehouse, delivered, tmp_path):
    file = tmp_path / "person.json"
    ran = lakehouse("export", "customer_id=123", "--output", str(file))
    assert (ran.out, len(json.loads(file.read_text()))) == ([], 1)
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("argument", ["anna@example.org", "customer_id=", "=7", "anna=7"])
def test_a_wrong_argument_is_wrong_usage_and_its_value_is_not_told(lakehouse, argument):
    ran = lakehouse("export", argument)
    assert ran.code == 2
    assert "@" not in ran.err[-1] and "7" not in ran.err[-1]


@pytest.fixture
def requested(settings: Settings) -> None:
    """Two requests; what one of them is about cannot be reached everywhere."""
    for request_id in ("R-1", "R-2"):
        named = [Named("customer_id", "1234567890")]
        open_request(settings, request_id, named, why="They asked.", by="me", now=NOW)
    unreachable = (Unreachable("the backup of May"),)
    change_request(
        settings,
        "R-2",
        lambda one: replace(one, state="exception", unreachable=unreachable),
    )


@pytest.mark.usefixtures("requested")
def test_erasures_lists_requests_and_no_values(lakehouse: Lakehouse) -> None:
    ran = lakehouse("erasures")
    assert ran.code == 0
    assert [line.split("|")[1].strip() for line in ran.out[2:4]] == ["requested", "exception"]
    assert "2026-02-28 12:00:00Z, late" in ran.out[2]
    assert ran.out[4:] == [
        "(2 requests; 2 late)",
        "R-2 does not reach the backup of May; its operator has to erase it",
    ]
    assert "1234567890" not in "".join(ran.out)


@pytest.mark.usefixtures("requested")
def test_erasures_of_one_are_told_to_programs(lakehouse: Lakehouse) -> None:
    (request,) = records(lakehouse("erasures", "R-2", "--format", "json"))
    assert (request["request"], request["state"], request["due_at"], request["is_late"]) == (
        "R-2",
        "exception",
        "2026-02-28T12:00:00Z",
        True,
    )
    assert request["unreachable"] == [{"place": "the backup of May"}]
    assert [one["column"] for one in request["people"]] == ["customer_id"]
