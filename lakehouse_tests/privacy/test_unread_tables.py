"""People are not said to be erased while there is a table that nobody here can look through."""

import pytest

from lakehouse.errors import TypeUnsupported
from lakehouse.privacy.erasure_search import search_again
from lakehouse.privacy.identity import Named, find_people
from lakehouse.privacy.personal_export import export_people
from lakehouse.privacy.run_erasure import dry_run
from lakehouse_tests.iceberg.strangers import EVENTS, make_events
from lakehouse_tests.privacy.an_erasure import HERS, NAMED, Home
from lakehouse_tests.privacy.small_lakehouse import ORDERS

pytestmark = pytest.mark.unit
PLACE = f"the table {EVENTS}"


@pytest.mark.long
def test_the_request_waits_for_who_writes_the_table(there: Home) -> None:
    make_events(there.engine.catalog)

    erased = there.erase(*NAMED, now=True)

    assert erased.request.state == "exception"
    (unreachable,) = erased.request.unreachable
    assert unreachable.place == PLACE
    (place,) = [one for one in erased.record.places if one.place == PLACE]
    assert f"{EVENTS} has a column of the type variant" in place.why
    assert HERS not in str(there.rows(ORDERS))
    assert there.erase(now=True, is_elsewhere_done=True).request.state == "verified"


@pytest.mark.long
def test_who_is_nowhere_else_is_not_said_to_be_unknown(there: Home) -> None:
    make_events(there.engine.catalog)
    nobody = Named("customer_id", "123456789")

    asked = there.erase(nobody)
    assert (asked.request.state, asked.is_stopped) == ("exception", True)
    assert [place.place for place in asked.record.unattended] == [PLACE]
    assert there.erase(is_elsewhere_done=True).request.state == "not_found"


@pytest.mark.long
def test_one_that_comes_later_keeps_a_search_from_being_a_proof(there: Home) -> None:
    there.erase(*NAMED, now=True)
    assert search_again(there.erasable, "R-1").is_proof

    make_events(there.engine.catalog)

    report = search_again(there.erasable, "R-1")
    assert not report.is_proof
    assert report.obstacles[0].startswith(f"not proved: {PLACE}: not looked into: It was not")


def test_a_dry_run_names_it(there: Home) -> None:
    make_events(there.engine.catalog)
    assert PLACE in [place.place for place in dry_run(there.erasable, NAMED).places]


def test_an_export_names_it_and_has_the_rows_of_others(there: Home) -> None:
    make_events(there.engine.catalog)
    of = there.erasable
    identities = find_people(of.engine, of.subjects, NAMED)

    exported = export_people(of.engine, of.subjects, identities, of.tables)

    assert ORDERS.name in {held.table for held in exported.rows}
    assert list(exported.unsupported) == [EVENTS]
    assert "variant" in exported.unsupported[EVENTS]


def test_a_table_that_may_hold_people_stops_the_erasure_by_name(there: Home) -> None:
    """Somebody gave a table of ours such a column by SQL."""
    location = there.engine.catalog.metadata_location(ORDERS.name)
    assert location
    io = there.engine.catalog.load(ORDERS.name).io
    with io.new_input(location).open() as file:
        text = file.read().decode()
    with io.new_output(location).create(overwrite=True) as file:
        file.write(text.replace('"double"', '"variant"').encode())

    with pytest.raises(
        TypeUnsupported, match=f"{ORDERS.name} has a column of the type variant"
    ):
        there.erase(*NAMED, now=True)
