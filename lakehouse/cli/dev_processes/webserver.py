"""Dagster's webserver, which rejects requests that another web site makes from a browser.

Dagster accepts any Host and Origin, and mutations by GET. Run as
`python -m lakehouse.cli.dev_processes.webserver SOCKET HOST WORKSPACE`.
"""

import re
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers, QueryParams
from starlette.responses import PlainTextResponse
from starlette.websockets import WebSocketClose

from lakehouse.orchestration.dagster_internals import open_workspace
from lakehouse.settings import Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_ALL_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104
_ADDRESS = re.compile(r"[\d.]+|[\da-f:]*:[\da-f:.]*")
_MUTATION = re.compile(r"\bmutation\b")
_OPEN_REQUESTS_SECONDS = 2


def served_hosts(host: str, ui_url: str) -> frozenset[str]:
    """Return the hosts that the UI is opened by: `localhost`, `--host` and LAKEHOUSE_UI_URL."""
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


def main(file_descriptor: int, host: str, workspace: str) -> None:
    """Serve the UI on a socket that this process inherited, until SIGINT."""
    import uvicorn
    from dagster_webserver.app import create_app_from_workspace_process_context

    ui_url = Settings.from_env().ui_url or ""
    with open_workspace(workspace) as context:
        app = create_app_from_workspace_process_context(context)
        app.add_middleware(SameSite, hosts=served_hosts(host, ui_url), ui_url=ui_url)
        config = uvicorn.Config(
            app, log_level="warning", timeout_graceful_shutdown=_OPEN_REQUESTS_SECONDS
        )
        uvicorn.Server(config).run(sockets=[socket.socket(fileno=file_descriptor)])


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main(int(sys.argv[1]), *sys.argv[2:])
