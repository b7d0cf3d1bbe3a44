"""An S3 that refuses each request, as it does of a key that is not there where keys may not be
listed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

_SAID = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


class _Refusing(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_response(403)
        self.send_header("Content-Length", str(len(_SAID)))
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()
        self.wfile.write(_SAID)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def denying_s3() -> Iterator[str]:
    """Yield the address of one that answers for as long as the block takes."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
