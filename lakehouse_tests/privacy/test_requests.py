"""Requests: made once, without a value in their ledger, and moved on by one process at a time."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakehouse.errors import UsageError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.privacy.erasure_record import ErasureRecord, write_record
from lakehouse.privacy.folder import hmac_key
from lakehouse.privacy.identity import Named
from lakehouse.privacy.requests import (
    Request,
    a_month_after,
    allow_people,
    open_request,
    read_request,
    read_requests,
)
from lakehouse.privacy.sealed_values import unseal
from lakehouse.privacy.suppressed_people import (
    SuppressedPerson,
    add_suppressed,
    read_suppressed,
)
from lakehouse.settings import Settings
from lakehouse.tables.person import person_hmac
from lakehouse_tests.privacy.small_lakehouse import SOURCES, TABLES, erasable_of

pytestmark = pytest.mark.unit

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
SECRET = "anna.example@example.org"
ANNA = [Named("customer_id", "1234567890"), Named("customer_email", SECRET)]
REQUEST = Request("R-1", (), "", "me", NOW, a_month_after(NOW))


def opened(settings: Settings, named: list[Named] = ANNA, **parts: str) -> Request:
    texts = {"request_id": "R-1", "why": "They asked.", "by": "me"} | parts
    return open_request(settings, texts.pop("request_id"), named, now=NOW, **texts)


def content_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("request_id", [".R-17", "-R-17", "", "..", "a/b", "a b", "a" * 65])
def test_a_request_gets_no_id_that_would_hide_it(settings: Settings, request_id: str) -> None:
    with pytest.raises(UsageError, match="expected a letter or digit, and up to 63"):
        opened(settings, request_id=request_id)
    assert content_below(settings.home) == b""


def test_a_request_has_its_values_sealed_and_no_file_has_them_in_clear(
    settings: Settings,
) -> None:
    request = opened(settings)
    assert (request.state, request.due_at) == (
        "requested",
        datetime(2026, 2, 28, 12, tzinfo=UTC),
    )
    assert unseal(settings, "R-1").named == tuple((one.column, one.value) for one in ANNA)
    for value in (SECRET, "1234567890"):
        assert value.encode() not in content_below(settings.home)


def test_the_same_request_again_is_the_one_that_is_there(settings: Settings) -> None:
    first = opened(settings)
    again = [Named("customer_email", SECRET), Named("customer_id", " 01234567890")]
    assert (
        opened(settings, again, why="Another text.") == first == read_request(settings, "R-1")
    )
    assert read_requests(settings) == [first]


def test_other_people_under_one_id_are_rejected_and_not_told(settings: Settings) -> None:
    opened(settings)
    with pytest.raises(UsageError, match=r"^Request R-1 names other people; ") as raised:
        opened(settings, [Named("customer_email", "bert@example.org")])
    assert "@" not in str(raised.value)
    assert len(unseal(settings, "R-1").named) == 2


@pytest.mark.parametrize(
    "parts", [{"why": f"{SECRET.upper()} asked"}, {"request_id": "erase-1234567890"}]
)
def test_a_text_that_stays_and_holds_a_value_is_rejected(
    settings: Settings, parts: dict[str, str]
) -> None:
    with pytest.raises(UsageError, match=r"that is to be erased, and is retained") as raised:
        opened(settings, **parts)
    assert "1234567890" not in str(raised.value) and "anna" not in str(raised.value).lower()
    assert not (settings.home / "privacy" / "requests" / "R-1.json").exists()


def test_many_at_once_make_one_request(settings: Settings) -> None:
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: opened(settings), range(8)))
    assert set(made) == {read_request(settings, "R-1")}
    assert len(unseal(settings, "R-1").named) == 2


def test_a_request_that_is_not_there_is_named(settings: Settings) -> None:
    with pytest.raises(UsageError, match=r"There is no request R-2\. `lakehouse erasures`"):
        read_request(settings, "R-2")


def test_a_home_without_requests_has_none_and_stays_as_it_is(settings: Settings) -> None:
    assert read_requests(settings) == []
    assert not settings.home.exists()


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ((2026, 1, 31), (2026, 2, 28)),
        ((2028, 1, 30), (2028, 2, 29)),
        ((2026, 12, 5), (2027, 1, 5)),
        ((2026, 11, 30), (2026, 12, 30)),
    ],
)
def test_a_month_later_is_the_same_day_or_the_last(
    moment: tuple[int, int, int], expected: tuple[int, int, int]
) -> None:
    assert a_month_after(datetime(*moment, tzinfo=UTC)) == datetime(*expected, tzinfo=UTC)


def test_a_request_is_late_after_its_month_unless_it_is_done() -> None:
    after = REQUEST.due_at + timedelta(seconds=1)
    assert REQUEST.is_late(after) and not REQUEST.is_late(REQUEST.due_at)
    assert not replace(REQUEST, state="verified").is_late(after)


def test_a_person_of_an_unfinished_request_is_not_allowed_again(
    settings: Settings, engine_without_spark: Engine
) -> None:
    """That request would erase the new rows too."""
    opened(settings)
    digest = person_hmac(hmac_key(settings), "customer_id", "7")
    write_record(settings, "R-1", ErasureRecord(hmacs=(digest,)))
    add_suppressed(settings, [SuppressedPerson("customer_id", digest, NOW)])
    erasable = erasable_of(settings, engine_without_spark, TABLES, SOURCES)

    with pytest.raises(UsageError, match="by request R-1, which would erase new rows too"):
        allow_people(erasable, [Named("client", "007")], by="me", why="new contract")

    assert read_suppressed(settings).erased_at
