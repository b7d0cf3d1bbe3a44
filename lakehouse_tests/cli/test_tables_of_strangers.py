"""Commands skip and name a table that only Spark can read."""

from pathlib import Path

import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.iceberg_release import is_spark_3
from lakehouse.settings import Settings
from lakehouse_tests.cli.conftest import Lakehouse
from lakehouse_tests.cli.outcomes import records
from lakehouse_tests.iceberg.strangers import EVENTS, make_events

OTHER = "t.other"
NAMED = f"{EVENTS} has a column of the type variant, which only Spark can read"


@pytest.fixture
def strange(settings: Settings) -> Path:
    """Two undeclared tables, one unreadable without Spark; returns its metadata file."""
    catalog = Catalog.of(settings)
    make_events(catalog, "string", OTHER)
    return make_events(catalog)


@pytest.mark.unit
@pytest.mark.usefixtures("strange")
def test_status_says_that_it_is_not_read_and_does_not_fail(lakehouse: Lakehouse) -> None:
    ran = lakehouse("status")

    assert ran.code == 0
    assert [line for line in ran.err if NAMED in line] == ran.err[-1:]
    (line,) = [line for line in ran.out if line.startswith(f"{EVENTS} ")]
    assert "not read" in line
    assert "damaged" not in line
    found = {one["table"]: one for one in records(lakehouse("status", "--format", "json"))}
    assert found[OTHER]["rows"] == 2
    assert (found[EVENTS]["damage"], found[EVENTS]["exists"]) == (None, True)
    assert NAMED in found[EVENTS]["unsupported"]


@pytest.mark.unit
@pytest.mark.usefixtures("strange")
@pytest.mark.parametrize("command", ["history", "files", "diff", "cost", "maintain"])
def test_who_names_it_is_told_why_not(lakehouse: Lakehouse, command: str) -> None:
    ran = lakehouse(command, EVENTS)
    assert ran.code == 1
    assert ran.out == []
    assert ran.err[-1].startswith(f"lakehouse: {NAMED}")


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.skipif(is_spark_3(), reason="Spark 3.5 knows no VARIANT")
def test_sql_reads_and_writes_it(lakehouse: Lakehouse) -> None:
    made = lakehouse(
        "sql",
        "--write",
        "CREATE NAMESPACE strangers; CREATE TABLE strangers.events (id bigint, event variant)"
        " TBLPROPERTIES ('format-version'='3'); INSERT INTO strangers.events SELECT 1,"
        """ parse_json('{"a": [1, "b"]}')""",
    )
    assert (made.code, made.err) == (0, [])
    assert made.out[-1] == "ok"

    found = lakehouse("sql", "SELECT * FROM strangers.events", "--format", "json")

    assert records(found) == [{"id": 1, "event": '{"a":[1,"b"]}'}]
    assert lakehouse("status").code == 0
    assert NAMED in lakehouse("cost").err[0]
