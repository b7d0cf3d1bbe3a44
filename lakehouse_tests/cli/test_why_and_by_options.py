"""A reason is given in words, and a mute for a while; what only stands for a text is refused,
and nothing is done.
"""

from datetime import timedelta

import pytest

from lakehouse.alerts.alert_state import read_state
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


def test_a_table_is_muted_for_a_while(lakehouse: Lakehouse, settings) -> None:
    assert lakehouse("mute", "silver.fruits", "--until", "2h").code == 0
    (mute,) = read_state(settings).mutes.values()
    assert mute.until - mute.at == timedelta(hours=2)


def test_what_mutes_a_table_all_the_same_is_named_with_the_command_that_ends_it(
    lakehouse: Lakehouse,
) -> None:
    assert lakehouse("mute", "silver.*", "--until", "3d").code == 0
    assert lakehouse("mute", "silver.fruits", "--until", "2h").code == 0
    (said,) = lakehouse("mute", "silver.fruits", "--off").out
    assert said.startswith("silver.fruits is still muted by silver.*, until ")
    assert said.endswith("; `lakehouse mute 'silver.*' --off` ends that.")
    assert lakehouse("mute", "silver.*", "--off").out == ["silver.* is muted no more."]

    assert lakehouse("mute", "silver.fruits", "--until", "2h").code == 0
    (said,) = lakehouse("mute", "silver.*", "--off").out
    assert said.startswith("silver.fruits is still muted, until ")
