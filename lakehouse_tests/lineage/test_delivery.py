"""Events are sent in order and once; secrets are not logged."""

import logging
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lakehouse.lineage import send_events
from lakehouse.lineage.send_events import send_waiting
from lakehouse.settings import Settings
from lakehouse_tests.alerts.receiver import Receiver, receiving
from lakehouse_tests.lineage.appends import append, engine_at, events

KEY = "not to be shown"


@pytest.fixture
def address() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def sending(settings: Settings, address: Receiver, monkeypatch: pytest.MonkeyPatch) -> Settings:
    # However busy the machine is.
    monkeypatch.setattr(send_events, "_TIMEOUT_SECONDS", 60.0)
    monkeypatch.setattr(send_events, "_SECONDS", 60.0)
    url = f"http://127.0.0.1:{address.port}/api/v1/lineage?token=secret"
    return replace(settings, openlineage_url=url, openlineage_key=KEY)


def test_events_are_sent_once_and_in_order(sending: Settings, address: Receiver) -> None:
    engine = engine_at(sending)
    append(engine, "a")
    append(engine, "b")
    send_waiting(sending)

    assert address.bodies == events(sending.openlineage_file)
    assert {taken.headers["authorization"] for taken in address.taken} == {f"Bearer {KEY}"}


def test_pending_events_are_sent_after_a_failure(
    sending: Settings, address: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    address.responses = [503]
    append(engine_at(sending), "a")
    assert address.bodies == []
    send_waiting(sending)
    assert address.bodies == [], "The next request is later."

    monkeypatch.setattr(send_events, "PAUSE_SECONDS", 0.0)
    append(engine_at(sending), "b")

    assert address.bodies == events(sending.openlineage_file)


def test_a_permanently_rejected_event_is_skipped(sending: Settings, address: Receiver) -> None:
    address.responses = [422]
    append(engine_at(sending), "a")

    assert address.bodies == events(sending.openlineage_file)[1:]


@pytest.mark.parametrize("status", [301, 302])
def test_a_redirect_is_no_delivery(
    sending: Settings, address: Receiver, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    address.responses = [status]
    append(engine_at(sending), "a")

    assert address.taken == [], "The key is not forwarded."
    monkeypatch.setattr(send_events, "PAUSE_SECONDS", 0.0)
    send_waiting(sending)
    assert address.bodies == events(sending.openlineage_file)


def test_the_oldest_of_too_many_waiting_events_are_deleted(
    sending: Settings, address: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send_events, "_MOST_WAITING", 2)
    log = engine_at(sending).listener.log
    for kind in ("1", "2", "3"):
        log.append({"eventType": kind})
    send_waiting(sending)

    assert [body["eventType"] for body in address.bodies] == ["2", "3"]


def test_a_write_does_not_wait_for_an_unreachable_endpoint(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    down = replace(settings, openlineage_url="http://127.0.0.1:9/secret", openlineage_key=KEY)
    started_at = time.monotonic()

    with caplog.at_level(logging.DEBUG):
        assert append(engine_at(down), "a") is not None

    assert time.monotonic() - started_at < send_events.PAUSE_SECONDS
    assert "pending" in caplog.text
    assert "secret" not in caplog.text
    assert KEY not in caplog.text


def test_settings_show_no_secret(sending: Settings) -> None:
    assert KEY not in repr(sending)
    assert "token=secret" not in repr(sending)
