"""Placeholders are rejected as a reason or a name."""

import pytest

from lakehouse_tests.cli.conftest import Lakehouse


@pytest.mark.parametrize("why", ["…", "...", "", "  "])
@pytest.mark.parametrize(
    "command",
    [
        ("publish", "silver.fruits", "--run", "0123abcd"),
        ("reject", "banana.csv", "--feed", "fruits"),
        ("mute", "silver.fruits", "--until", "2h"),
        ("quarantine", "clear", "silver.fruits"),
        ("alerts", "ack", "ID"),
        ("alerts", "close", "ID"),
    ],
)
def test_a_placeholder_is_no_reason(lakehouse, command, why):
    ran = lakehouse(*command, "--why", why)
    assert ran.code == 2
    assert f"--why is {' '.join(repr(why).split())}" in ran.err[0]


def test_a_placeholder_is_nobody(lakehouse: Lakehouse) -> None:
    ran = lakehouse("mute", "silver.fruits", "--until", "2h", "--by", "…")
    assert (ran.code, "--by is '…'" in ran.err[0]) == (2, True)
