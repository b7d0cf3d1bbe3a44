"""A Glue and S3 emulator in this process that counts requests of Python clients and the JVM."""

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
    """Counts requests by kind and forwards them to the emulator."""

    application: Callable[..., Iterable[bytes]]
    counts: Counter[str] = field(default_factory=Counter)
    lock: Lock = field(default_factory=Lock)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Count a request and forward it."""
        if not environ["PATH_INFO"].startswith(_OF_MOTO):
            with self.lock:
                self.counts[_kind(environ)] += 1
        return self.application(environ, start_response)


def _kind(environ: dict[str, Any]) -> str:
    """Return the kind of a request as S3 prices it."""
    if environ.get("HTTP_X_AMZ_TARGET", "").startswith(_OF_GLUE):
        return GLUE
    method, query = environ["REQUEST_METHOD"], environ.get("QUERY_STRING", "").split("&")
    # Paths start with the bucket.
    has_key = "/" in environ["PATH_INFO"].strip("/")
    if method == "DELETE" or (
        method == "POST" and "delete" in {one.rstrip("=") for one in query}
    ):
        return DELETE
    if method in ("GET", "HEAD"):
        return GET if has_key else LIST
    return PUT


@contextmanager
def counting_account() -> Iterator[tuple[str, Requests]]:
    """Emulate an account during the block; yield its address and request counts."""
    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server

    class Quiet(MotoRequestHandler):
        def log_request(self, *_: Any) -> None:
            """Do not log requests."""

    requests = Requests(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, requests, threaded=True, request_handler=Quiet)
    serving = Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        serving.join()
