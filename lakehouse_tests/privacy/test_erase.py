"""A person is erased by a request: from tables, delivered files and all else, in whatever calls;
and only then the request is verified.
"""

from datetime import timedelta

import pytest

from lakehouse.errors import TableBusy, UsageError
from lakehouse.iceberg.erasure import remove_unnamed
from lakehouse.privacy import erasure_steps, run_erasure
from lakehouse.privacy.erasure import Erasure
from lakehouse.privacy.identity import Named
from lakehouse.privacy.requests import read_requests
from lakehouse.privacy.run_erasure import STEPS, dry_run
from lakehouse.privacy.sealed_values import is_sealed
from lakehouse.privacy.suppressed_people import read_suppressed
from lakehouse_tests.examples import repeated
from lakehouse_tests.privacy.an_erasure import (
    ANNA,
    ANNA_BEFORE,
    HERS,
    NAMED,
    SHARED,
    SUMS,
    WITHOUT,
    Home,
    on_a_cluster,
)
from lakehouse_tests.privacy.small_lakehouse import MAILS, ORDERS, PROFILES, RAW, People

pytestmark = pytest.mark.unit

CLUSTER = "the Spark cluster of spark://cluster:7077"
DONE = [
    "requested",
    "files_rewritten",
    "rows_erased",
    "places_erased",
    "logically_deleted",
    "physically_deleted",
    "verified",
    "values_destroyed",
]


@pytest.mark.scenario
def test_a_person_is_gone_and_it_is_proved(there: Home) -> None:
    assert len(there.files_with(ANNA, ANNA_BEFORE, HERS)) > 5

    erasure = there.erase(*NAMED, now=True)

    assert erasure.request.state == "verified", (
        erasure.search_report and erasure.search_report.as_text()
    )
    assert there.files_with(ANNA, ANNA_BEFORE, HERS) == []
    assert not is_sealed(there.settings, "R-1")
    assert there.actions() == DONE


@pytest.mark.scenario
def test_everyone_else_keeps_what_they_have(there: Home) -> None:
    there.erase(*NAMED, now=True)

    ben, family = (8001234567, "ben@example.org", 2.0), 9001234567
    assert there.rows(RAW) == [("8001234567", "ben@example.org", "2")]
    assert there.rows(ORDERS) == [ben, (family, SHARED, 3.0), (9101234567, SHARED, 4.0)]
    assert there.rows(PROFILES) == [(8001234567, 1)]
    assert there.rows(MAILS) == [("ben@example.org", 3), (SHARED, 2)]
    assert there.rows(SUMS) == [(4,)]
    assert there.read("inbox/orders/new.csv") == WITHOUT
    assert "bread and butter" in there.read("logs/app.log")


@pytest.mark.long
def test_a_value_that_others_have_stays_theirs_and_is_told_as_shared(there: Home) -> None:
    erasure = there.erase(Named("customer_id", "9001234567"), now=True)

    assert erasure.request.state == "verified"
    assert (SHARED, 2) in there.rows(MAILS)
    assert (9101234567, SHARED, 4.0) in there.rows(ORDERS)
    assert erasure.search_report is not None
    assert erasure.search_report.shared != ()


@pytest.mark.long
def test_of_two_who_share_a_value_and_go_together_it_goes_too(there: Home) -> None:
    both = [Named("customer_id", "9001234567"), Named("customer_id", "9101234567")]
    erasure = there.erase(*both, now=True)

    assert erasure.request.state == "verified"
    assert there.files_with(SHARED) == []


@pytest.mark.long
def test_without_now_the_rest_waits_for_its_time(
    there: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.lose_a_write()
    erasure = there.erase(*NAMED)

    assert erasure.request.state == "pending_physical"
    assert erasure.request.physical_due_at is not None
    assert HERS not in str(there.rows(ORDERS))
    assert is_sealed(there.settings, "R-1")

    monkeypatch.setattr(remove_unnamed, "YOUNGEST", timedelta(0))
    assert there.erase().request.state == "verified"
    assert there.actions() == [*DONE[:5], "pending_physical", *DONE[5:]]
    assert there.files_with(ANNA, HERS) == []


@pytest.mark.long
def test_a_request_that_is_done_does_nothing_more(there: Home) -> None:
    there.erase(*NAMED, now=True)
    before = there.listing()

    assert there.erase(now=True).request.state == "verified"
    assert there.listing() == before


def test_who_is_unknown_is_not_found_and_that_is_recorded(there: Home) -> None:
    erasure = there.erase(Named("customer_id", "5551234567"))

    assert erasure.request.state == "not_found"
    assert erasure.record.unknown == 1
    assert there.actions() == ["requested", "not_found", "values_destroyed"]
    assert not read_suppressed(there.settings).erased_at
    assert there.files_with("5551234567") == []


def test_who_cannot_be_told_from_others_opens_no_request(there: Home) -> None:
    with pytest.raises(UsageError, match="expected one, or each"):
        there.erase(Named("email", SHARED))

    assert read_requests(there.settings) == []


def test_a_dry_run_counts_and_changes_nothing(there: Home) -> None:
    before = there.listing()
    would_go = dry_run(there.erasable, NAMED)

    assert would_go.rows[ORDERS.name] == {"main": 1, "month_end": 1}
    assert set(would_go.files.values()) == {1}
    assert would_go.kept == (MAILS.name, SUMS.name)
    assert "logs/app.log" in {place.place for place in would_go.places}
    assert there.listing() == before


@pytest.mark.long
def test_a_file_that_may_hold_a_short_id_prevents_the_proof(there: Home) -> None:
    people = People(there.engine, there.erasable.subjects)
    people.add(ORDERS, (7, "seven@example.org", 1.0))
    there.write("rejected/orders/c.csv", "client,amount\n7,2\n")

    erasure = there.erase(Named("customer_id", "7"), now=True)

    assert erasure.request.state == "logically_deleted"
    assert erasure.failed_search is not None
    assert [gap.file for gap in erasure.failed_search.gaps] == ["rejected/orders/c.csv"]
    emptied = there.erase(now=True, erase_whole=("rejected/orders/c.csv",))
    assert emptied.request.state == "verified"


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.long
@pytest.mark.parametrize(
    "last",
    repeated(
        [step.__name__ for _, step in STEPS],
        tried=["erase_files", "erase_rows", "remove_physically", "conclude"],
    ),
)
def test_killed_after_any_step_the_next_call_ends_the_same(
    there: Home, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    number = [step.__name__ for _, step in STEPS].index(last)
    title, take = STEPS[number]

    def die(erasure: Erasure) -> None:
        take(erasure)
        raise Killed

    steps = [*STEPS]
    steps[number] = (title, die)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(run_erasure, "STEPS", steps)
        there.erase(*NAMED, now=True)

    erasure = there.erase(now=True)
    assert erasure.request.state == "verified", (
        erasure.search_report and erasure.search_report.as_text()
    )
    assert there.actions() == DONE
    assert there.files_with(ANNA, ANNA_BEFORE, HERS) == []
    assert erasure.record.rows[ORDERS.name] == {"main": 1, "month_end": 1}


@pytest.mark.scenario
def test_a_residue_leaves_the_request_open_and_is_named(
    there: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(erasure_steps, "scrub_places", lambda *_, **__: ())
        erasure = there.erase(*NAMED, now=True)

    assert erasure.request.state == "logically_deleted"
    assert erasure.search_report is not None
    assert [finding.file for finding in erasure.search_report.findings if "log" in finding.file]
    assert is_sealed(there.settings, "R-1")
    assert there.erase(now=True).request.state == "verified"


@pytest.mark.long
def test_rows_that_come_meanwhile_go_with_the_next_call(there: Home) -> None:
    there.lose_a_write()
    there.erase(*NAMED)
    loaded = there.engine.catalog.load(ORDERS.name)
    loaded.append(_row_of_hers(loaded.schema().as_arrow()))

    erasure = there.erase(now=True)
    assert erasure.request.state == "verified"
    assert erasure.record.rows[ORDERS.name]["main"] == 2
    assert there.actions().count("rows_erased") == 2


@pytest.mark.long
def test_a_place_outside_is_an_exception_until_somebody_saw_to_it(there: Home) -> None:
    home = on_a_cluster(there)
    erasure = home.erase(*NAMED, now=True)
    assert erasure.request.state == "exception"
    assert [one.place for one in erasure.request.unreachable] == [CLUSTER]
    assert home.erase(now=True).request.state == "exception"

    assert home.erase(is_elsewhere_done=True).request.state == "verified"


@pytest.mark.long
def test_rows_that_come_after_somebody_saw_to_a_place_may_have_reached_it(
    there: Home,
) -> None:
    home = on_a_cluster(there)
    home.lose_a_write()
    home.erase(*NAMED, is_elsewhere_done=True)
    loaded = home.engine.catalog.load(ORDERS.name)
    loaded.append(_row_of_hers(loaded.schema().as_arrow()))

    assert home.erase(now=True).request.state == "exception"


def _row_of_hers(schema):
    import pyarrow as pa

    return pa.Table.from_pylist(
        [{"customer_id": int(HERS), "email": ANNA, "amount": 9.0}], schema
    )


def test_at_once_is_denied_where_another_host_may_write(there: Home) -> None:
    loaded = there.engine.catalog.load(ORDERS.name)
    head = loaded.current_snapshot().snapshot_id
    loaded.manage_snapshots().create_branch(head, "audit_0123456789abcdef").commit()

    with pytest.raises(TableBusy, match="audit_"):
        there.erase(*NAMED, now=True)
    assert read_requests(there.settings) == []
