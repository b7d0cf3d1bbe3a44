"""Dagster's UI on a port that it has: whether what answers there is of this home is asked
before it is printed.
"""

import json
import os
import socket
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from lakehouse.cli.dev_processes.child_processes import Children
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.runtime.dev_address_file import leave_note
from lakehouse.settings import Settings

NAME = "Dagster"
_TRIED_PORTS = 20
_PAUSE_SECONDS = 0.5
_OPENING_SECONDS = 300.0
_OF_ANOTHER = 5
"""So many answers in a row that are not of this home come of something else on the port."""
_ASKED = b'{"query": "{ instance { info } }"}'


class _Answer(Enum):
    OURS = auto()
    ANOTHER = auto()
    NONE = auto()


class PortTaken(UsageError):
    """Something else listens on the port."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(
            f"Something listens on {_place(host)}:{port} already; expected a free port.",
            next_step="Stop it, or give another one with --port.",
        )


def free_port(host: str, port: int, *, is_fixed: bool) -> int:
    """Return a port that nobody listens on: this one, or where it may be another, the next that
    is free.

    :raises PortTaken: when there is none.
    :raises UsageError: when the host cannot be looked up.
    """
    for other in range(port, port + (1 if is_fixed else _TRIED_PORTS)):
        if not _is_taken(host, other):
            return other
    raise PortTaken(host, port)


@dataclass(frozen=True)
class Address:
    """Where the UI is to listen; `is_fixed` where that port was asked for, and no other will
    do.
    """

    host: str
    port: int
    is_fixed: bool

    @property
    def url(self) -> str:
        """What a browser opens."""
        return f"http://{_place(self.host)}:{self.port}"


def open_ui(
    settings: Settings,
    children: Children,
    address: Address,
    command: Callable[[int], Sequence[str]],
    look: Callable[[], None],
) -> str:
    """Start Dagster, wait until its UI answers, and return its address; another port where that
    one was taken.

    :param command: what starts Dagster on a port.
    :param look: what is done while it is waited.
    :raises PortTaken: when the port was taken in between, and no other may be tried.
    :raises LakehouseError: when Dagster ended, or did not answer.
    """
    while True:
        # Links in alerts lead to this UI, unless people reach it by another address.
        url = settings.ui_url or address.url
        os.environ["LAKEHOUSE_UI_URL"] = url
        children.start(NAME, command(address.port))
        if _opens(settings, children, address, look):
            leave_note(settings, url)
            return address.url
        children.end(NAME)
        if address.is_fixed:
            raise PortTaken(address.host, address.port)
        address = replace(
            address, port=free_port(address.host, address.port + 1, is_fixed=False)
        )


def _opens(
    settings: Settings, children: Children, address: Address, look: Callable[[], None]
) -> bool:
    """Wait until the UI answers; whether it does, and nothing else has its port."""
    of_another, until = 0, time.monotonic() + _OPENING_SECONDS
    while of_another < _OF_ANOTHER:
        answer = _ask(settings, address)
        if answer is _Answer.OURS:
            return True
        of_another = of_another + 1 if answer is _Answer.ANOTHER else 0
        code = children.ended(NAME)
        if answer is _Answer.NONE and (code is not None or time.monotonic() > until):
            raise ended(settings, code)
        look()
        time.sleep(_PAUSE_SECONDS)
    return False


def ended(settings: Settings, code: int | None) -> LakehouseError:
    """Return the error that says that Dagster ended, or never answered."""
    how = "does not answer" if code is None else f"ended by itself (exit status {code})"
    return LakehouseError(
        f"{NAME} {how}, and all else ends with it.",
        next_step=(
            f"Its last words are above, or in {settings.home / 'logs'}; `lakehouse dev` starts"
            " it again."
        ),
    )


def _ask(settings: Settings, address: Address) -> _Answer:
    """Ask what listens there for its instance; there is one `dev` for each home."""
    host, port = _reached(address.host), address.port
    if not _is_taken(host, port):
        return _Answer.NONE
    request = urllib.request.Request(
        f"http://{_place(host)}:{port}/graphql",
        _ASKED,
        headers={"Content-Type": "application/json"},
    )
    try:
        # The address is http, above.
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            info = json.loads(answer.read())["data"]["instance"]["info"]
    except TimeoutError:
        return _Answer.NONE
    except (OSError, ValueError, KeyError, TypeError):
        return _Answer.ANOTHER
    return _Answer.OURS if _is_of(settings, info) else _Answer.ANOTHER


def _is_of(settings: Settings, info: str) -> bool:
    """Whether what Dagster tells of its instance, as YAML, names this home."""
    import yaml

    return json.dumps(str(settings.dagster_home))[1:-1] in json.dumps(
        yaml.safe_load(info), default=str
    )


def _place(host: str) -> str:
    """Return a host as an address of the web has it."""
    return f"[{host}]" if ":" in host else host


def _reached(host: str) -> str:
    """Return where a server is reached that listens on all addresses."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104


def _is_taken(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.settimeout(5)
        try:
            return probe.connect_ex((host, port)) == 0
        except socket.gaierror as error:
            raise UsageError(
                f"--host is {host!r}, which this machine cannot look up; expected a name or an"
                " address of its own.",
                next_step="Leave it out to listen on this machine alone.",
            ) from error
