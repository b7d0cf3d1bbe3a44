"""Events on their way to an HTTP address: in order, once, and without a word of its secrets."""

import json
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lakehouse.lineage import delivery, event_log
from lakehouse.lineage.open_lineage import send_waiting
from lakehouse.settings import Settings
from lakehouse_tests.lineage.told import append, engine_at, events

KEY = "not to be shown"


@dataclass
class Address:
    """What was received, and what is answered next; 201 once nothing is left to answer."""

    url: str = ""
    bodies: list[dict] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    answers: list[int] = field(default_factory=list)
    pages: list[str | None] = field(default_factory=list)
    """The keys that came along when a page was asked for."""


@pytest.fixture
def address() -> Iterator[Address]:
    address = Address()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = address.answers.pop(0) if address.answers else 201
            if answer == 201:
                address.bodies.append(body)
            address.keys.add(self.headers["Authorization"])
            self.send_response(answer)
            self.send_header("Content-Length", "0")
            if answer in (301, 302):
                self.send_header("Location", "/sign-in")
            self.end_headers()

        def do_GET(self) -> None:
            address.pages.append(self.headers["Authorization"])
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    address.url = f"http://127.0.0.1:{server.server_address[1]}/api/v1/lineage?token=secret"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield address
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def sending(settings: Settings, address: Address) -> Settings:
    return replace(settings, openlineage_url=address.url, openlineage_key=KEY)


def test_events_are_sent_once_each_in_their_order(sending: Settings, address: Address) -> None:
    engine = engine_at(sending)
    append(engine, "a")
    append(engine, "b")
    send_waiting(sending)

    assert address.bodies == events(sending.openlineage_file)
    assert address.keys == {f"Bearer {KEY}"}


def test_what_waits_is_sent_once_the_address_answers_again(
    sending: Settings, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    address.answers = [503]
    append(engine_at(sending), "a")
    assert address.bodies == []
    send_waiting(sending)
    assert address.bodies == [], "It is left in peace for a while."

    monkeypatch.setattr(delivery, "PAUSE_SECONDS", 0.0)
    append(engine_at(sending), "b")

    assert address.bodies == events(sending.openlineage_file)


def test_an_event_that_is_refused_for_good_is_passed_over(
    sending: Settings, address: Address
) -> None:
    address.answers = [422]
    append(engine_at(sending), "a")

    assert address.bodies == events(sending.openlineage_file)[1:]


@pytest.mark.parametrize("answer", [301, 302])
def test_an_address_that_leads_elsewhere_has_not_received_the_event(
    sending: Settings, address: Address, monkeypatch: pytest.MonkeyPatch, answer: int
) -> None:
    """As a proxy does that asks people to sign in: the page there answers whatever is asked."""
    address.answers = [answer]
    append(engine_at(sending), "a")

    assert address.pages == [], "Nor is the key sent there."
    monkeypatch.setattr(delivery, "PAUSE_SECONDS", 0.0)
    send_waiting(sending)
    assert address.bodies == events(sending.openlineage_file)


@pytest.mark.parametrize("answers", [[503], [201, 503]])
def test_files_that_were_moved_aside_twice_are_sent_from_the_oldest_that_is_left(
    sending: Settings, address: Address, monkeypatch: pytest.MonkeyPatch, answers: list[int]
) -> None:
    monkeypatch.setattr(delivery, "PAUSE_SECONDS", 0.0)
    log = engine_at(sending).listener.log
    log.append({"eventType": "1"})
    log.append({"eventType": "2"})
    address.answers = answers
    send_waiting(sending)
    monkeypatch.setattr(event_log, "MAX_BYTES", 1)
    for kind in ("3", "4"):
        log.append({"eventType": kind})
        address.answers = [503]
        send_waiting(sending)
    address.answers, address.bodies = [], []
    send_waiting(sending)

    assert [body["eventType"] for body in address.bodies] == ["3", "4"]


def test_a_file_of_events_needs_no_ending(
    sending: Settings, address: Address, tmp_path: Path
) -> None:
    named = replace(sending, openlineage_path=tmp_path / "events")
    append(engine_at(named), "a")

    assert [event["eventType"] for event in events(tmp_path / "events")] == [
        "START",
        "COMPLETE",
    ]
    assert address.bodies == events(tmp_path / "events")


def test_a_write_does_not_wait_long_for_an_address_that_is_down(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    down = replace(settings, openlineage_url="http://127.0.0.1:9/secret", openlineage_key=KEY)
    began = time.monotonic()

    with caplog.at_level(logging.DEBUG):
        assert append(engine_at(down), "a") is not None

    assert time.monotonic() - began < 10
    assert "pending" in caplog.text
    assert "secret" not in caplog.text
    assert KEY not in caplog.text


def test_no_secret_is_shown_of_the_settings(sending: Settings) -> None:
    assert KEY not in repr(sending)
    assert "token=secret" not in repr(sending)
