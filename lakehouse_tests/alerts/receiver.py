"""A webhook on this machine."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Taken:
    """A message: its headers by lower case name, and its JSON, or its text as `text`."""

    headers: dict[str, str]
    body: dict
    path: str


@dataclass
class Receiver:
    """The received messages; `is_down` responds 503, `responses` are the next status codes."""

    port: int = 0
    is_down: bool = False
    responses: list[int] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    refused: int = 0

    @property
    def url(self) -> str:
        """The URL for apprise."""
        return f"json://127.0.0.1:{self.port}/"

    @property
    def titles(self) -> list[str]:
        return [one.body["title"] for one in self.taken if "title" in one.body]

    @property
    def bodies(self) -> list[dict]:
        return [one.body for one in self.taken]

    def next_status(self) -> int:
        """Return the status of the next response."""
        if self.responses:
            return self.responses.pop(0)
        return 503 if self.is_down else 200


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver during the block."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            status = receiver.next_status()
            if status == 200:
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = json.loads(text) if text[:1] == "{" else {"text": text}
                receiver.taken.append(Taken(headers, body, self.path))
            else:
                receiver.refused += 1
            self.send_response(status)
            if status in (301, 302):
                self.send_header("Location", "/sign-in")
            self.send_header("Content-Length", "2")
            self.end_headers()
            # The response of Slack.
            self.wfile.write(b"ok")

        def do_GET(self) -> None:
            receiver.taken.append(Taken({}, {}, self.path))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

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
