"""A reason is given in words, and a mute for a while; what only stands for a text is refused,
and nothing is done.
"""

import pytest

from lakehouse_tests.cli.conftest import Lakehouse


@pytest.mark.parametrize("why", ["…", "...", "", "  ", "TEXT", "<why>", "'…'", "?"])
@pytest.mark.parametrize(
    "command",
    [
        ("publish", "silver.fruits", "--run", "0123abcd"),
        ("reject", "banana.csv", "--feed", "fruits"),
        ("mute", "silver.fruits", "--until", "2h"),
    ],
)
def test_a_placeholder_is_no_reason(
    lakehouse: Lakehouse, command: tuple[str, ...], why: str
) -> None:
    ran = lakehouse(*command, "--why", why)
    assert ran.code == 2
    assert (
        f"--why is {' '.join(repr(why).split())}, which only stands for a text; expected some"
        " words." in ran.err[0]
    )


def test_a_placeholder_is_nobody(lakehouse: Lakehouse) -> None:
    ran = lakehouse("mute", "silver.fruits", "--until", "2h", "--by", "NAME")
    assert (ran.code, "--by is 'NAME'" in ran.err[0]) == (2, True)
