"""Each place by itself has the person before, and no byte of it after."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.orchestration.deployment import masking_key
from lakehouse.privacy.places.mask_files import scrub_places
from lakehouse.tables.masking import mask
from lakehouse_tests.privacy.places.a_home import PLACES, put
from lakehouse_tests.privacy.places.a_person import NEIGHBOUR, PERSON, SHORT_ID, traces

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("place", PLACES)
def test_each_place_has_the_person_before_and_not_after(settings, place):
    PLACES[place](settings)
    assert len(traces(settings.home)) == 1

    done = scrub_places(settings, [PERSON])

    assert [found.outcome for found in done if found.values or found.files] in (
        ["erased"],
        ["removed"],
        # It was in no row.
        [],
    )
    assert all(found.is_done for found in done)
    assert traces(settings.home) == []


def content(home: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in home.rglob("*") if file.is_file()}


def test_a_dry_run_counts_what_the_next_call_does_and_changes_nothing(settings):
    for make in PLACES.values():
        make(settings)
    before = content(settings.home)

    counted = scrub_places(settings, [PERSON], is_dry=True)

    after = content(settings.home)
    assert {file: after[file] for file in before} == before
    assert counted == scrub_places(settings, [PERSON])


def test_the_masks_that_stand_for_the_person_go_too(settings):
    masks = [mask(masking_key(settings), value) for value in (SHORT_ID, NEIGHBOUR)]
    put(settings, "logs/spark.log", "\n".join(map(str, masks)).encode())

    scrub_places(settings, [PERSON])

    assert (
        settings.home / "logs" / "spark.log"
    ).read_text() == f"[erased]***********\n{masks[1]}"


def test_where_alerts_of_the_person_were_sent_is_said(settings):
    sending = replace(settings, alert_urls=("json://127.0.0.1:1/",))
    PLACES["a record of alerts"](sending)

    first, again = (scrub_places(sending, [PERSON]) for _ in range(2))

    assert [place.outcome for place in first] == ["not reached", "erased"]
    assert again == ()


def test_the_person_stands_in_nothing_that_is_said(settings):
    for make in PLACES.values():
        make(settings)

    said = repr(scrub_places(settings, [PERSON]))

    assert not any(value in said for values in PERSON.personal.values() for value in values)
