"""`lakehouse erase` and `erasures verify`: what they say and how they end, without a JVM."""

import io
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.expressions import EqualTo

from lakehouse.cli.people.erase import _state
from lakehouse.definitions import TABLES
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import ensure
from lakehouse.iceberg.upkeep import expire_snapshots
from lakehouse.privacy.erasure import Erasure, How
from lakehouse.privacy.erasure_record import ErasureRecord
from lakehouse.privacy.requests import Request
from lakehouse.privacy.verifier.report import NotProved, Report
from lakehouse.settings import Settings
from lakehouse_tests.cli.conftest import Lakehouse
from lakehouse_tests.privacy.an_erasure import expire_without_spark
from lakehouse_tests.privacy.small_lakehouse import no_spark

pytestmark = pytest.mark.unit

RAW = replace(TABLES["bronze.bnpl_transactions_raw"], partitioning=())
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ANNA = "7001234567"
ERASE = ("erase", f"customer_id={ANNA}", "--request", "R-1")


@pytest.fixture(autouse=True)
def delivered(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bronze table of transactions with two customers, made without a JVM."""
    monkeypatch.setattr(expire_snapshots, "_call_procedure", expire_without_spark)
    engine = Engine(Catalog.of(settings), no_spark, settings.lock_dir, masking_key=b"testing")  # type: ignore[arg-type]
    ensure(engine, RAW)
    table = engine.catalog.load(RAW.name)
    schema = table.schema().as_arrow()
    rows = []
    for number, customer in enumerate((ANNA, "8001234567"), start=1):
        row = dict.fromkeys(schema.names)
        row |= {"customer_id": customer, "_source_file": "a.csv", "_source_sha256": "0"}
        row |= {"_source_row": number, "_source_modified_at": NOW, "_ingested_at": NOW}
        rows.append(row)
    table.append(pa.Table.from_pylist(rows, schema))


def test_a_dry_run_says_what_would_go(lakehouse: Lakehouse, home: Path) -> None:
    ran = lakehouse(*ERASE, "--dry-run")

    assert (ran.code, ran.err) == (0, [])
    assert ran.out[0] == "bronze.bnpl_transactions_raw: 1 row of main"
    assert ran.out[-1] == "Nothing was changed."
    assert not (home / "privacy").exists()


@pytest.mark.scenario
def test_an_erasure_says_what_went_and_that_it_is_verified(lakehouse, home):
    ran = lakehouse(*ERASE, "--now")

    assert ran.code == 0, ran.err
    assert ran.out[0] == "bronze.bnpl_transactions_raw: 1 row of main"
    assert ran.out[-1] == (
        "R-1 is verified: nothing of it is left, and its values are destroyed."
    )
    assert ANNA not in "".join([*ran.out, *ran.err])
    assert lakehouse("export", f"customer_id={ANNA}").out == ["[]"]


@pytest.mark.long
def test_what_waits_is_said_to_go_by_itself_or_by_the_same_call(lakehouse, home):
    (table,) = (home / "warehouse").glob("**/bnpl_transactions_raw*")
    (table / "data" / "lost.csv").write_text("left by a write that was killed")

    ran = lakehouse(*ERASE)

    assert ran.code == 0
    assert ran.out[-1].startswith("R-1 is pending_physical: readers see nothing of it.")
    assert ran.out[-1].endswith(
        "on: by itself while `lakehouse dev` runs (the sensor erase_when_due), or by"
        " `lakehouse erase --request R-1`."
    )


def test_an_exception_without_proof_is_not_said_to_be_done() -> None:
    gap = NotProved("rejected/orders/a.csv", "not readable", "an unreadable row")
    report = Report("values", (), (), (), (gap,), files=1, size_bytes=1)
    request = Request("R-1", (), "", "me", NOW, NOW, state="exception")
    erasure = Erasure(None, request, How("me"), ErasureRecord(), search_report=report)  # type: ignore[arg-type]

    assert _state(erasure) == "R-1 is exception, and not proved."


def test_who_is_unknown_is_said_to_be_not_found(lakehouse: Lakehouse) -> None:
    ran = lakehouse("erase", "customer_id=5551234567", "--request", "R-1")

    assert ran.code == 0
    assert ran.out == [
        "1 person of those who were named is not found.",
        "R-1: not found. Nothing holds who was named; this is recorded.",
    ]


def test_people_may_come_from_a_file_and_standard_input(lakehouse, tmp_path, monkeypatch):
    file = tmp_path / "people"
    file.write_text(f"customer_id={ANNA}\n\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("8001234567\n"))
    ran = lakehouse(
        "erase", "customer_id=-", "--file", str(file), "--request", "R-1", "--dry-run"
    )

    assert ran.out[0] == "bronze.bnpl_transactions_raw: 2 rows of main"


def test_a_wrong_line_of_a_file_is_named_without_what_it_holds(lakehouse, tmp_path):
    file = tmp_path / "people"
    file.write_text("anna@example.org\n")
    ran = lakehouse("erase", "--file", str(file), "--request", "R-1")

    assert ran.code == 2
    assert "not named as SUBJECT=VALUE" in ran.err[-1] and "anna@" not in ran.err[-1]


@pytest.mark.long
def test_verify_says_by_what_it_searched(lakehouse: Lakehouse) -> None:
    lakehouse(*ERASE, "--now")
    by_hashes = lakehouse("erasures", "verify", "R-1")
    by_value = lakehouse("erasures", "verify", "R-1", "--subject", f"customer_id={ANNA}")

    assert (by_hashes.code, by_value.code) == (0, 0), by_hashes.out
    assert by_hashes.out[1].startswith("The HMACs of the decoded values")
    assert by_value.out[1].startswith("Distinctive values were searched in every byte")


@pytest.mark.scenario
def test_verify_ends_with_1_where_somebody_is_found(lakehouse: Lakehouse, home: Path) -> None:
    lakehouse(*ERASE, "--now")
    (home / "note.txt").write_text(f"customer_id={ANNA}")
    ran = lakehouse(
        "erasures", "verify", "R-1", "--subject", f"customer_id={ANNA}", "--format", "json"
    )

    assert ran.code == 1
    (finding, *_) = json.loads("\n".join(ran.out))["findings"]
    assert finding["file"] == "note.txt"


@pytest.mark.long
def test_verify_ends_with_1_where_the_record_was_changed(lakehouse, settings):
    lakehouse(*ERASE, "--now")
    (*_, said) = lakehouse("erasures", "verify", "R-1").out
    assert re.fullmatch(r"audit\.gdpr_actions: \d+ rows, unchanged\.", said)

    Catalog.of(settings).load("audit.gdpr_actions").delete(EqualTo("sequence", 2))

    ran = lakehouse("erasures", "verify", "R-1")
    assert ran.code == 1
    assert ran.out[-1].startswith(
        "audit.gdpr_actions: changed: row 2 is missing, repeated or changed"
    )
    shown = lakehouse("erasures", "verify", "R-1", "--format", "json")
    assert shown.code == 1
    assert json.loads("\n".join(shown.out))["record"]["is_whole"] is False
