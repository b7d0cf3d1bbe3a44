"""Who is gone stays gone, and whoever asks need not read the list to see that nobody is."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from lakehouse.errors import LakehouseError
from lakehouse.privacy.folder import hmac_key
from lakehouse.privacy.suppressed_people import (
    SuppressedPerson,
    add_suppressed,
    allow_again,
    read_suppressed,
)
from lakehouse.settings import Settings
from lakehouse.tables.person import person_hmac

pytestmark = pytest.mark.unit

AT = datetime(2026, 3, 1, tzinfo=UTC)
NAMES = ("customer_id", "client")


def erasure_time(settings: Settings, names: Iterable[str], value: str) -> datetime | None:
    return read_suppressed(settings).erasure_time(names, value)


def suppressed_person(settings: Settings, value: str, at: datetime = AT) -> SuppressedPerson:
    digest = person_hmac(hmac_key(settings), "customer_id", value)
    return SuppressedPerson("customer_id", digest, at)


def test_nobody_is_gone_of_a_home_without_a_request(settings: Settings) -> None:
    assert not read_suppressed(settings).erased_at
    assert erasure_time(settings, NAMES, "7") is None
    assert not settings.home.exists()


def test_who_is_gone_is_known_in_every_form_and_by_every_name(settings: Settings) -> None:
    add_suppressed(settings, [suppressed_person(settings, "7")])
    for form in ("7", " +007 "):
        assert erasure_time(settings, NAMES, form) == AT
    assert erasure_time(settings, ["CUSTOMER_ID"], "7") == AT
    assert erasure_time(settings, NAMES, "70") is None
    assert erasure_time(settings, ["merchant_id"], "7") is None


def test_of_who_was_erased_again_the_last_time_counts(settings: Settings) -> None:
    later = AT + timedelta(days=9)
    for at in (AT, later, AT):
        add_suppressed(settings, [suppressed_person(settings, "7", at)])
    assert erasure_time(settings, NAMES, "7") == later


def test_the_list_is_read_again_only_after_it_changed(settings: Settings) -> None:
    add_suppressed(settings, [suppressed_person(settings, "7")])
    first = read_suppressed(settings)
    add_suppressed(settings, [suppressed_person(settings, "7")])
    assert read_suppressed(settings) is first
    add_suppressed(settings, [suppressed_person(settings, "8")])
    assert erasure_time(settings, NAMES, "8") == AT


def test_who_is_allowed_again_is_gone_no_more(settings: Settings) -> None:
    people = [suppressed_person(settings, "7"), suppressed_person(settings, "8")]
    add_suppressed(settings, people)
    allow_again(settings, [people[0].hmac])
    assert erasure_time(settings, NAMES, "7") is None
    assert erasure_time(settings, NAMES, "8") == AT


def test_many_at_once_lose_nobody(settings: Settings) -> None:
    people = [suppressed_person(settings, str(number)) for number in range(12)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda person: add_suppressed(settings, [person]), people))
    assert len(read_suppressed(settings).erased_at) == 12


def test_many_at_once_make_one_key(settings: Settings) -> None:
    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(lambda _: hmac_key(settings), range(8)))) == 1


@pytest.mark.parametrize("content", [None, "", "zz", "00"])
def test_without_the_key_nobody_is_taken_for_not_gone(
    settings: Settings, content: str | None
) -> None:
    add_suppressed(settings, [suppressed_person(settings, "7")])
    key = settings.home / "privacy" / "hmac.key"
    key.unlink()
    if content is not None:
        key.write_text(content)
    add_suppressed(settings, [SuppressedPerson("customer_id", "ab" * 32, AT)])
    with pytest.raises(LakehouseError, match=r"hmac\.key is missing or no key"):
        erasure_time(settings, NAMES, "7")


def test_a_person_who_is_erased_again_is_allowed_no_more(settings: Settings) -> None:
    person = suppressed_person(settings, "7")
    add_suppressed(settings, [person])
    allow_again(settings, [person.hmac], by="me", why="new contract")
    add_suppressed(settings, [person])
    assert erasure_time(settings, NAMES, "7") is None
    add_suppressed(settings, [suppressed_person(settings, "7", AT + timedelta(days=9))])
    assert erasure_time(settings, NAMES, "7") == AT + timedelta(days=9)
