"""The port that `lakehouse dev` prints is the one that it has, also where another was
quicker.
"""

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from lakehouse.cli.dev_processes import dev_ui
from lakehouse.cli.dev_processes.child_processes import Children
from lakehouse.cli.dev_processes.dev_ui import Address, PortTaken, free_port, open_ui
from lakehouse.errors import LakehouseError
from lakehouse.runtime.dev_address_file import running_dev
from lakehouse.settings import Settings
from lakehouse_tests.cli.commands import free_port as any_port
from lakehouse_tests.processes import wait_for

pytestmark = pytest.mark.unit

UI = """
import http.server, sys
port, answer = int(sys.argv[1]), sys.argv[2].encode()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.send_response(200); self.end_headers(); self.wfile.write(answer)
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""
LASTING = f"try:\n exec({UI!r})\nexcept OSError:\n import time; time.sleep(60)"
"""A UI that says no more than whose it is, and does not end where its port is taken."""


def says(home: object) -> str:
    return json.dumps(
        {"data": {"instance": {"info": f"run_storage: x\nbase_dir: {json.dumps(str(home))}"}}}
    )


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[Children]:
    """What is started, and ended with the test."""
    monkeypatch.setattr(dev_ui, "_PAUSE_SECONDS", 0.1)
    monkeypatch.setenv("LAKEHOUSE_UI_URL", "")
    settings.make_home()
    with Children() as started:
        yield started


def opened(
    settings: Settings,
    children: Children,
    port: int,
    program: str = LASTING,
    *,
    is_fixed: bool = True,
) -> str:
    def command(at: int) -> list[str]:
        return [sys.executable, "-c", program, str(at), says(settings.dagster_home)]

    return open_ui(
        settings, children, Address("127.0.0.1", port, is_fixed), command, lambda: None
    )


def test_the_address_is_the_one_where_this_home_answers(
    settings: Settings, children: Children
) -> None:
    port = any_port()
    assert opened(settings, children, port, is_fixed=True) == f"http://127.0.0.1:{port}"
    note = running_dev(settings)
    assert note is not None
    assert note.url == f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("host", "url"),
    [("::1", "http://[::1]:3000"), ("lake.example.org", "http://lake.example.org:3000")],
)
def test_the_address_is_one_that_a_browser_opens(host: str, url: str) -> None:
    assert Address(host, 3000, is_fixed=True).url == url
    # The links of alerts are made of it.
    assert Settings.from_env({"LAKEHOUSE_UI_URL": url}).ui_url == url
    assert f"on {url.removeprefix('http://')} already" in str(PortTaken(host, 3000))


@pytest.mark.long
def test_a_port_that_another_took_meanwhile_is_not_said_to_be_ours(
    settings: Settings, children: Children
) -> None:
    port = any_port()
    children.start("another", [sys.executable, "-c", UI, str(port), says("/another/home")])
    wait_for(lambda: dev_ui._is_taken("127.0.0.1", port), "the other")
    url = opened(settings, children, port, is_fixed=False)
    assert url.startswith("http://127.0.0.1:")
    assert url != f"http://127.0.0.1:{port}"
    children.end(dev_ui.NAME)
    with pytest.raises(PortTaken, match=f"Something listens on 127.0.0.1:{port} already"):
        opened(settings, children, port, is_fixed=True)


def test_dagster_that_ends_before_it_answers_is_said(
    settings: Settings, children: Children
) -> None:
    with pytest.raises(LakehouseError, match=r"Dagster ended by itself \(exit status 3\)"):
        opened(settings, children, any_port(), "raise SystemExit(3)")


def test_the_next_port_is_taken_unless_one_was_asked_for() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        assert free_port("127.0.0.1", port, is_fixed=False) > port
        with pytest.raises(PortTaken):
            free_port("127.0.0.1", port, is_fixed=True)
