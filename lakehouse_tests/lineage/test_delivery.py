"""Events are sent in order and once; secrets are not logged."""

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
from lakehouse_tests.lineage.appends import append, engine_at, events

KEY = "not to be shown"


@dataclass
class Address:
    """An endpoint: received events, and its next responses; 201 by default."""

    url: str = ""
    bodies: list[dict] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    responses: list[int] = field(default_factory=list)
    pages: list[str | None] = field(default_factory=list)
    """The keys of GET requests."""


@pytest.fixture
def address() -> Iterator[Address]:
    address = Address()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = address.responses.pop(0) if address.responses else 201
            if status == 201:
                address.bodies.append(body)
            address.keys.add(self.headers["Authorization"])
            self.send_response(status)
            self.send_header("Content-Length", "0")
            if status in (301, 302):
                self.send_header("Location", "/sign-in")
            self.end_headers()

        def do_GET(self) -> None:
            address.pages.append(self.headers["Authorization"])
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

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


def test_events_are_sent_once_and_in_order(sending: Settings, address: Address) -> None:
    engine = engine_at(sending)
    append(engine, "a")
    append(engine, "b")
    send_waiting(sending)

    assert address.bodies == events(sending.openlineage_file)
    assert address.keys == {f"Bearer {KEY}"}


def test_pending_events_are_sent_after_a_failure(
    sending: Settings, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    address.responses = [503]
    append(engine_at(sending), "a")
    assert address.bodies == []
    send_waiting(sending)
    assert address.bodies == [], "The next request is later."

    monkeypatch.setattr(delivery, "PAUSE_SECONDS", 0.0)
    append(engine_at(sending), "b")

    assert address.bodies == events(sending.openlineage_file)


def test_a_permanently_rejected_event_is_skipped(sending: Settings, address: Address) -> None:
    address.responses = [422]
    append(engine_at(sending), "a")

    assert address.bodies == events(sending.openlineage_file)[1:]


@pytest.mark.parametrize("status", [301, 302])
def test_a_redirect_is_no_delivery(
    sending: Settings, address: Address, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    address.responses = [status]
    append(engine_at(sending), "a")

    assert address.pages == [], "The key is not forwarded."
    monkeypatch.setattr(delivery, "PAUSE_SECONDS", 0.0)
    send_waiting(sending)
    assert address.bodies == events(sending.openlineage_file)


@pytest.mark.parametrize("responses", [[503], [201, 503]])
def test_after_two_rotations_the_remaining_files_are_sent(
    sending: Settings, address: Address, monkeypatch: pytest.MonkeyPatch, responses: list[int]
) -> None:
    monkeypatch.setattr(delivery, "PAUSE_SECONDS", 0.0)
    log = engine_at(sending).listener.log
    log.append({"eventType": "1"})
    log.append({"eventType": "2"})
    address.responses = responses
    send_waiting(sending)
    monkeypatch.setattr(event_log, "MAX_BYTES", 1)
    for kind in ("3", "4"):
        log.append({"eventType": kind})
        address.responses = [503]
        send_waiting(sending)
    address.responses, address.bodies = [], []
    send_waiting(sending)

    assert [body["eventType"] for body in address.bodies] == ["3", "4"]


def test_the_event_file_needs_no_suffix(
    sending: Settings, address: Address, tmp_path: Path
) -> None:
    named = replace(sending, openlineage_path=tmp_path / "events")
    append(engine_at(named), "a")

    assert [event["eventType"] for event in events(tmp_path / "events")] == [
        "START",
        "COMPLETE",
    ]
    assert address.bodies == events(tmp_path / "events")


def test_a_write_does_not_wait_for_an_unreachable_endpoint(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    down = replace(settings, openlineage_url="http://127.0.0.1:9/secret", openlineage_key=KEY)
    started_at = time.monotonic()

    with caplog.at_level(logging.DEBUG):
        assert append(engine_at(down), "a") is not None

    assert time.monotonic() - started_at < 10
    assert "pending" in caplog.text
    assert "secret" not in caplog.text
    assert KEY not in caplog.text


def test_settings_show_no_secret(sending: Settings) -> None:
    assert KEY not in repr(sending)
    assert "token=secret" not in repr(sending)
