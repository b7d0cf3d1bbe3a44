"""Four weeks of transactions on a cluster that sees no file of the driver's, classic and through
Connect: they come week by week, are kept, computed anew, and somebody of them is erased. After
each the tables are what the truth says.
"""

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg
import pytest

from lakehouse.definitions import definitions
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import materialize, run_job
from lakehouse.orchestration.runs.upkeep_results import JOB
from lakehouse.sample_data.bnpl.generator import Generated
from lakehouse.settings import Settings
from lakehouse_tests.assets.deliveries import CLEAN, PROFILES, QUARANTINE, RAW, SUMMARY
from lakehouse_tests.cluster.lake import KINDS, Lake, lake_on
from lakehouse_tests.cluster.transactions import (
    FEED,
    WEEKS,
    check_truth,
    contents,
    files_of_week,
    generate_weeks,
    summary_of,
    summary_without,
    without,
)
from lakehouse_tests.conftest import on_empty_account, settings_at

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(3600)]
HOLDING = (RAW, CLEAN, QUARANTINE, PROFILES)
"""The tables that hold people."""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Generated:
    """The files of the four weeks, and the truth about them."""
    return generate_weeks(tmp_path_factory.mktemp("generated"))


@pytest.fixture(scope="module", params=KINDS)
def lake(request, cluster, moto, generated, tmp_path_factory):
    """A lakehouse with four weeks, by inbox, by path, and read by executors."""
    folder = tmp_path_factory.mktemp(request.param)
    settings = on_empty_account(moto, settings_at(folder / "home"))
    by_executors = {
        "LAKEHOUSE_EXECUTORS_READ": "always",
        "LAKEHOUSE_EXECUTOR_PYTHON": sys.executable,
    }
    with lake_on(cluster, settings, request.param) as lake:
        for week in range(WEEKS):
            files = files_of_week(generated, week)
            if week == 1:
                by_hand = folder / "by_hand"
                by_hand.mkdir()
                for file in files:
                    (by_hand / file.name).write_bytes(file.read_bytes())
                lake.run("ingest", FEED, "--path", str(by_hand))
                continue
            lake.put(FEED, *files)
            if week == WEEKS - 1:
                lake.run("ingest", FEED, **by_executors)
            else:
                lake.run("ingest", FEED)
        yield lake


def test_four_weeks_come_to_the_truth(lake, generated):
    check_truth(lake, generated)


def test_upkeep_leaves_the_rows_as_they_are(lake):
    before, files = contents(lake), files_read(lake)

    lake.run("maintain", *files)
    nightly = lake.call(run_nightly_upkeep)

    assert nightly == {"success": True, "messages": []}
    assert all(count < files[name] for name, count in files_read(lake).items()), files
    assert contents(lake) == before


def files_read(lake: Lake) -> dict[str, int]:
    """Return how many files a read opens, of the tables to which late files add small ones."""
    counts = {}
    for name in (RAW, PROFILES):
        tasks = [*lake.catalog.load(name).scan().plan_files()]
        deletes = {file.file_path for task in tasks for file in task.delete_files}
        counts[name] = len(tasks) + len(deletes)
    return counts


def run_nightly_upkeep() -> dict[str, Any]:
    """Run the job of upkeep as its schedule does, in this process."""
    settings = Settings.from_env()
    with open_instance(settings) as instance:
        result = run_job(definitions(lambda: settings), instance, JOB, {})
    return {"success": result.success, "messages": [*result.messages]}


def test_a_backfill_brings_back_what_somebody_deleted(lake, generated):
    before = contents(lake)
    first, *_, last = sorted(generated.truth.clean_by_day)
    for name in (CLEAN, SUMMARY):
        lake.catalog.load(name).delete(f"transaction_date >= '{last}'")
    assert contents(lake) != before

    lake.call(materialize_days, first=first, last=last)
    assert contents(lake) == before

    lake.catalog.load(SUMMARY).delete(f"transaction_date <= '{first}'")
    lake.run("backfill", SUMMARY, "--from", first, "--to", last)
    lake.run("backfill", PROFILES)
    assert contents(lake) == before
    check_truth(lake, generated)


def materialize_days(first: str, last: str) -> None:
    """Compute days of silver and gold in full, as the UI does, in this process."""
    settings = Settings.from_env()
    selection = dg.AssetSelection.assets(asset_key(CLEAN), asset_key(SUMMARY))
    with open_instance(settings) as instance:
        project = definitions(lambda: settings)
        result = materialize(project, instance, selection, partition=(first, last))
    assert result.success, result.messages


def test_somebody_is_erased_and_nobody_else(lake, generated):
    person = somebody(lake)
    expected = without(lake, of_person(person), HOLDING)
    assert expected != {name: contents(lake)[name] for name in HOLDING}

    said = lake.run("erase", f"customer_id={person}", "--request", "R-1", "--now")
    # What executors left on their disks somebody else has to see to.
    assert "R-1 is an exception" in said
    said = lake.run("erase", "--request", "R-1", "--elsewhere-done")
    assert "R-1 is verified" in said
    lake.run("erasures", "verify", "R-1", "--subject", f"customer_id={person}")

    rows = contents(lake)
    assert {name: rows[name] for name in HOLDING} == expected
    assert summary_of(lake.rows(SUMMARY)) == summary_without(person, generated.files)


def somebody(lake: Lake) -> int:
    """Return the most frequent customer with a refused row and an address of their own."""
    ids_by_address: dict[str, set[str]] = {}
    for row in lake.rows(RAW):
        if row["customer_id"]:
            ids_by_address.setdefault(row["customer_email"], set()).add(row["customer_id"])
    refused = {row["customer_id"] for row in lake.rows(QUARANTINE)}
    clean = Counter(row["customer_id"] for row in lake.rows(CLEAN))
    candidates = []
    for customer in clean:
        is_alone = ids_by_address.get(address_of(customer)) == {str(customer)}
        if is_alone and str(customer) in refused:
            candidates.append(customer)
    return max(candidates, key=lambda customer: clean[customer])


def address_of(customer: int) -> str:
    """Return the address that the generated files have of a customer."""
    return f"customer{customer}@example.com"


def of_person(person: int) -> Callable[[Mapping[str, Any]], bool]:
    """Return what tells whether a row is of a person."""

    def is_theirs(row: Mapping[str, Any]) -> bool:
        if row["customer_id"] is None:
            return row["customer_email"] == address_of(person)
        return str(row["customer_id"]) == str(person)

    return is_theirs
