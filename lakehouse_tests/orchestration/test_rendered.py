"""Alerts as a webhook, Slack and mail receive them."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_string
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
import requests

from lakehouse.alerts.incidents import Alert
from lakehouse.alerts.sinks import AppriseSink
from lakehouse.settings import Settings
from lakehouse_tests.alerts.receiver import Receiver, receiving

ROW = (
    "Row: fruit=<b>Fig</b> & *Plum* [here](http://example.org), note=<a"
    " href='http://example.org'>"
)
ALERT = Alert(
    "0123456789abcdef",
    "check silver.fruits a",
    "opened",
    "error",
    datetime(2026, 3, 1, 8, tzinfo=UTC),
    "silver.fruits: check a_b failed",
    (
        "1 of 2 rows break it.",
        ROW,
        'Next: lakehouse sql "SELECT * FROM silver.fruits_quarantine"',
    ),
    "silver.fruits",
)
LINES = [*ALERT.text.splitlines(), "Lakehouse fruit shop (local)"]


@pytest.fixture
def taken(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator["Sent"]:
    with receiving() as receiver:
        send = requests.Session.request

        def here(
            session: requests.Session, method: str, url: str, **how: Any
        ) -> requests.Response:
            parts = urlsplit(url)._replace(scheme="http", netloc=f"127.0.0.1:{receiver.port}")
            return send(session, method, urlunsplit(parts), **how)

        monkeypatch.setattr(requests.Session, "request", here)
        yield Sent(receiver, replace(settings, name="fruit shop").title)


class Sent:
    def __init__(self, receiver: Receiver, lakehouse: str) -> None:
        self.receiver, self.lakehouse = receiver, lakehouse

    def of(self, url: str) -> dict[str, Any]:
        AppriseSink(url, self.lakehouse).send(ALERT)
        return self.receiver.taken[-1].body


def test_a_webhook(taken: Sent) -> None:
    body = taken.of(taken.receiver.url)
    assert (body["title"], body["message"].splitlines()) == (ALERT.title, LINES)


def test_slack(taken: Sent) -> None:
    body = taken.of("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#data")
    (card,) = body["attachments"]
    assert body["mrkdwn"] is False
    assert card["title"] == ALERT.title
    lines = card["text"].splitlines()
    assert len(lines) == len(LINES)
    row = lines[1].replace("\u2060", "")
    assert row.startswith("Row: fruit=&lt;b&gt;Fig&lt;/b&gt; &amp; *Plum*")
    assert lines[2] == LINES[2]
    assert lines[-1] == LINES[-1]


def test_mail(settings: Settings) -> None:
    with mailbox() as (port, mails):
        url = f"mailto://127.0.0.1:{port}?from=lakehouse@example.org&to=data@example.org"
        AppriseSink(url, replace(settings, name="fruit shop").title).send(ALERT)
    mail = message_from_string(mails[0])
    assert (mail["Subject"], mail.get_content_type()) == (ALERT.title, "text/plain")
    payload = mail.get_payload(decode=True)
    assert isinstance(payload, bytes)
    assert payload.decode().splitlines() == LINES


@contextmanager
def mailbox() -> Iterator[tuple[int, list[str]]]:
    mails: list[str] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            while line := self.rfile.readline():
                command = line[:4].upper()
                if command == b"DATA":
                    self.wfile.write(b"354 go on\r\n")
                    text = b"".join(iter(self.rfile.readline, b".\r\n"))
                    mails.append(text.decode())
                self.wfile.write(b"221 bye\r\n" if command == b"QUIT" else b"250 ok\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        try:
            yield server.server_address[1], mails
        finally:
            server.shutdown()
