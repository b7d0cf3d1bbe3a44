"""`lakehouse mute`: sends no alert of a table until a moment."""

from datetime import UTC, datetime
from fnmatch import fnmatchcase

import click

from lakehouse.cli.call_context import State, command, plain_name
from lakehouse.cli.options import by_option, future_timestamp, why_option
from lakehouse.cli.output.cell_values import utc_seconds
from lakehouse.errors import UsageError


@command("mute")
@click.argument("name", metavar="TABLE")
@click.option("--until", metavar="MOMENT", help="When it ends: 2h, or 2026-12-01T08:00+08:00.")
@why_option("Why; it is shown with the alerts.", required=False)
@by_option
@click.option("--off", is_flag=True, help="End it now.")
def mute(state: State, name: str, until: str | None, why: str, by: str, off: bool) -> None:
    """Send no alert of a table until a moment.

    TABLE may be a pattern, such as 'silver.*'. Meanwhile alerts are recorded, and sent at the
    end if their incidents are still open.
    """
    from lakehouse.alerts.mutes import Mute
    from lakehouse.alerts.operator_actions import set_mute

    now, muted = datetime.now(UTC), _muted_tables(state, name)
    if off == (until is not None):
        raise UsageError("Until when? Expected --until with a moment, or --off.")
    ends = now if off else future_timestamp("--until", until or "", now)
    known = set_mute(state.settings, Mute(muted, ends, by, why, now))
    if not off:
        click.echo(f"{muted} is muted until {utc_seconds(ends)}; it ends by itself.")
        return
    click.echo(f"{muted} is not muted any more.")
    for mute in known.current_mutes(now):
        click.echo(f"{mute.table} is still muted until {utc_seconds(mute.until)}.")


def _muted_tables(state: State, name: str) -> str:
    if "*" not in name:
        return state.declared_table(name).name
    if not any(fnmatchcase(known, plain_name(name)) for known in state.declared):
        raise UsageError(f"{name} is the pattern of no table; expected such as 'silver.*'.")
    return plain_name(name)
