"""Glue and S3 on an emulator in this process, which counts what it is asked, whoever asks: Python's
clients and the JVM's alike.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Any

GLUE, GET, LIST, PUT, DELETE = "Glue", "S3 GET, HEAD", "S3 LIST", "S3 PUT", "S3 DELETE"
KINDS = (GLUE, GET, LIST, PUT, DELETE)
_OF_GLUE = "AWSGlue."
_OF_MOTO = "/moto-api"


@dataclass
class Requests:
    """What was asked, by kind; a pass through to the application that answers."""

    application: Callable[..., Iterable[bytes]]
    counts: Counter[str] = field(default_factory=Counter)
    lock: Lock = field(default_factory=Lock)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Count a request, and have it answered."""
        if not environ["PATH_INFO"].startswith(_OF_MOTO):
            with self.lock:
                self.counts[_kind(environ)] += 1
        return self.application(environ, start_response)


def _kind(environ: dict[str, Any]) -> str:
    """Return of which kind a request is, as S3 prices it."""
    if environ.get("HTTP_X_AMZ_TARGET", "").startswith(_OF_GLUE):
        return GLUE
    method, asked = environ["REQUEST_METHOD"], environ.get("QUERY_STRING", "").split("&")
    # Below the bucket, which comes first in a path.
    has_key = "/" in environ["PATH_INFO"].strip("/")
    if method == "DELETE" or (
        method == "POST" and "delete" in {one.rstrip("=") for one in asked}
    ):
        return DELETE
    if method in ("GET", "HEAD"):
        return GET if has_key else LIST
    return PUT


@contextmanager
def counted_account() -> Iterator[tuple[str, Requests]]:
    """Emulate an account as long as the block takes; yield its address, and what is asked of
    it.
    """
    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server

    class Quiet(MotoRequestHandler):
        def log_request(self, *_: Any) -> None:
            """Say nothing of each request."""

    requests = Requests(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, requests, threaded=True, request_handler=Quiet)
    serving = Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        serving.join()
