"""Which requests `lakehouse dev` rejects before Dagster's webserver sees them."""

import asyncio
from typing import Any

import pytest

from lakehouse.cli.dev_processes.webserver import SameSite, served_hosts

pytestmark = pytest.mark.unit
HERE = "127.0.0.1:3000"
QUERY, MUTATION = "query=%7Binstance%7Bid%7D%7D", "query=%20mutation%20M%7BstopSensor%7D"


def answer(
    headers: dict[str, str],
    method: str = "POST",
    query: str = "",
    listens_on: str = "127.0.0.1",
    ui_url: str = "",
    kind: str = "http",
) -> Any:
    """The status of a request, or what a websocket is told; 200 is the application's."""
    sent: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "app", "status": 200})

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": kind,
        "path": "/graphql",
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        **({"method": method} if kind == "http" else {}),
    }
    guard = SameSite(app, served_hosts(listens_on, ui_url), ui_url)
    asyncio.run(guard(scope, None, send))
    return sent[0].get("status", sent[0]["type"])


@pytest.mark.parametrize("host", [HERE, "localhost:3000", "LocalHost:3000", "[::1]:3000"])
def test_the_ui_itself_is_served(host: str) -> None:
    assert answer({"host": host, "origin": f"http://{host}"}) == 200
    assert answer({"host": host}, "GET", QUERY) == 200
    assert answer({"host": host, "origin": f"http://{host}"}, kind="websocket") == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:3000", "10.0.0.5", ""]
)
def test_a_foreign_host_is_rejected(host: str) -> None:
    assert answer({"host": host}) == 403


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost:9999", "http://127.0.0.1", ""]
)
def test_a_foreign_origin_is_rejected(origin: str) -> None:
    headers = {"host": HERE, "origin": origin}
    assert answer(headers) == 403
    assert answer(headers, kind="websocket") == "websocket.close"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_mutation_is_accepted_by_post_only(method: str) -> None:
    assert answer({"host": HERE}, method, MUTATION) == 403


def test_other_addresses_are_served_where_they_are_declared() -> None:
    everywhere = "0.0.0.0"
    assert answer({"host": "10.0.0.5:3000"}, listens_on=everywhere) == 200
    assert answer({"host": "evil.example"}, listens_on=everywhere) == 403
    proxied = {"host": HERE, "origin": "https://ui.example"}
    assert answer(proxied, ui_url="https://ui.example") == 200
    assert answer({"host": "ui.example"}, ui_url="https://ui.example") == 200
