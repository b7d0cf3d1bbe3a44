"""The port that `lakehouse dev` listens on, and the address that it prints."""

import socket
from contextlib import closing

import pytest

from lakehouse.cli.dev_processes.ui_address import UIAddress, listen
from lakehouse.errors import UsageError
from lakehouse.settings import Settings

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("host", "url"),
    [("::1", "http://[::1]:3000"), ("lake.example.org", "http://lake.example.org:3000")],
)
def test_the_address_is_one_that_a_browser_opens(host: str, url: str) -> None:
    assert UIAddress(host, 3000).url == url
    # The links of alerts start with it.
    assert Settings.from_env({"LAKEHOUSE_UI_URL": url}).ui_url == url


def test_the_next_port_is_used_unless_the_port_is_fixed() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        listener, address = listen("127.0.0.1", port, is_fixed=False)
        with listener:
            assert address.port == listener.getsockname()[1] > port
        with pytest.raises(UsageError, match="expected a free port"):
            listen("127.0.0.1", port, is_fixed=True)
