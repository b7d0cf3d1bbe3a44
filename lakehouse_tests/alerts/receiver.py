"""A webhook on this machine, which takes what it is sent, or is down for a while."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Taken:
    """One message: its headers by name in lower case, and its JSON, or its text where it is
    none.
    """

    headers: dict[str, str]
    body: dict
    path: str


@dataclass
class Receiver:
    """What was taken so far; `is_down` answers 503 to each message."""

    port: int = 0
    is_down: bool = False
    taken: list[Taken] = field(default_factory=list)
    refused: int = 0

    @property
    def url(self) -> str:
        """Where apprise finds it."""
        return f"json://127.0.0.1:{self.port}/"

    @property
    def titles(self) -> list[str]:
        return [one.body["title"] for one in self.taken if "title" in one.body]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver, for as long as the block takes."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            if receiver.is_down:
                receiver.refused += 1
            else:
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.taken.append(
                    Taken(
                        headers,
                        json.loads(text) if text[:1] == "{" else {"text": text},
                        self.path,
                    )
                )
            self.send_response(503 if receiver.is_down else 200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            # What Slack answers.
            self.wfile.write(b"ok")

        def do_GET(self) -> None:
            receiver.taken.append(Taken({}, {}, self.path))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
