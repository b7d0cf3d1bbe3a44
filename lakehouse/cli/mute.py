"""`lakehouse mute`: the alerts of a table silenced for a while."""

from datetime import UTC, datetime
from fnmatch import fnmatchcase
from shlex import quote
from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command, plain_name
from lakehouse.cli.output.cell_values import utc_seconds
from lakehouse.cli.time_arguments import future_timestamp
from lakehouse.cli.why_and_by_options import by_option, why_option
from lakehouse.errors import UsageError

if TYPE_CHECKING:
    from lakehouse.monitoring.silences import Silence


@command("mute")
@click.argument("name", metavar="TABLE")
@click.option("--until", metavar="MOMENT", help="When it ends: 2h, or 2026-12-01T08:00+08:00.")
@why_option("Why; it is shown with the alerts.", required=False)
@by_option
@click.option("--off", is_flag=True, help="End it now.")
def mute(state: State, name: str, until: str | None, why: str, by: str, off: bool) -> None:
    """Send no alert of a table until a moment.

    TABLE may be a pattern, such as 'silver.*'. What fires meanwhile is recorded, and sent at
    that moment where it still fires.
    """
    from lakehouse.monitoring.silences import Silence, add_silence

    now = datetime.now(UTC)
    named = _muted_tables(state, name)
    if off == (until is not None):
        raise UsageError("Until when? Expected --until with a moment, or --off.")
    ends = now if off else future_timestamp("--until", until or "", now)
    add_silence(state.settings, Silence(named, ends, by, why, now))
    if not off:
        click.echo(f"{named} is muted until {utc_seconds(ends)}; it ends by itself.")
        return
    still = _still_muting(state, named, now)
    if not still:
        click.echo(f"{named} is muted no more.")
    for silence in still:
        which = f"{silence.table} is still muted"
        if fnmatchcase(named, silence.table):
            which = f"{named} is still muted by {silence.table}"
        click.echo(
            f"{which}, until {utc_seconds(silence.until)}; `lakehouse mute"
            f" {quote(silence.table)} --off` ends that."
        )


def _still_muting(state: State, named: str, now: datetime) -> "list[Silence]":
    """Return the silences that hold for a table all the same, or for some tables of a pattern."""
    from lakehouse.monitoring.silences import read_silences, select_current

    return [
        silence
        for silence in select_current(read_silences(state.settings), now)
        if fnmatchcase(named, silence.table) or fnmatchcase(silence.table, named)
    ]


def _muted_tables(state: State, name: str) -> str:
    if "*" not in name:
        return state.declared_table(name).name
    if not any(fnmatchcase(known, plain_name(name)) for known in state.declared):
        raise UsageError(f"{name} is the pattern of no table; expected such as 'silver.*'.")
    return plain_name(name)
