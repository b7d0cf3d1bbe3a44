"""Rejects requests from other web sites to the Dagster UI (DNS rebinding, CSRF).

Dagster itself accepts every Host and Origin, and mutations by GET.
"""

import re
import socket
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers, QueryParams
from starlette.responses import PlainTextResponse
from starlette.websockets import WebSocketClose

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_ALL_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104
_ADDRESS = re.compile(r"[\d.]+|[\da-f:]*:[\da-f:.]*")
_MUTATION = re.compile(r"\bmutation\b")


def served_hosts(arguments: Sequence[str], ui_url: str) -> frozenset[str]:
    """Return the accepted host names: `localhost`, `--host` and LAKEHOUSE_UI_URL."""
    host = dict(pairwise(arguments)).get("--host", "")
    names = {"localhost", "127.0.0.1", "::1", host, urlsplit(ui_url).hostname}
    if host in _ALL_ADDRESSES:
        names |= {socket.gethostname(), socket.getfqdn()}
    return frozenset(name.lower() for name in names if name)


class SameSite:
    """ASGI middleware that answers 403 to a foreign Host or Origin, and to a mutation by GET."""

    def __init__(self, app: "ASGIApp", hosts: frozenset[str], ui_url: str) -> None:
        """Wrap an application that is reached by `hosts` or through a proxy."""
        self._app, self._hosts, self._proxy = app, hosts, urlsplit(ui_url).netloc.lower()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass a request on, or reject it."""
        problem = "" if scope["type"] == "lifespan" else self._problem(scope)
        app = self._app
        if problem:
            is_http = scope["type"] == "http"
            app = PlainTextResponse(problem, 403) if is_http else WebSocketClose(1008, problem)
        await app(scope, receive, send)

    def _problem(self, scope: "Scope") -> str:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        name = urlsplit(f"//{host}").hostname or ""
        # A host name that resolves to this server can belong to another site; an IP cannot.
        is_address = _ADDRESS.fullmatch(name) and self._hosts.intersection(_ALL_ADDRESSES)
        if name not in self._hosts and not is_address:
            return f"Host {host!r} is rejected; expected {', '.join(sorted(self._hosts))}."
        places = {host.lower(), self._proxy} - {""}
        if origin is not None and urlsplit(origin).netloc.lower() not in places:
            return f"Origin {origin!r} is rejected; expected {host!r}."
        query = QueryParams(scope["query_string"]).get("query", "")
        if scope.get("method") != "POST" and _MUTATION.search(query):
            return "A mutation is accepted by POST only."
        return ""
