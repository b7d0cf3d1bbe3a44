"""`lakehouse alerts` and `lakehouse mute`: what people were told, whether it arrives, and silence for a while."""

import logging
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from shlex import quote
from typing import TYPE_CHECKING

import click

from lakehouse.cli.alert import AlertsGroup, ack, close, record_of, show
from lakehouse.cli.decided import by_option, why_option
from lakehouse.cli.moments import coming_moment
from lakehouse.cli.output import count, json_array, table
from lakehouse.cli.state import State, command, plain_name, verbose_option
from lakehouse.cli.values import Column
from lakehouse.errors import LakehouseError, UsageError

if TYPE_CHECKING:
    from lakehouse.monitoring.mutes import Mute
    from lakehouse.resources.alert import Alert

_SHOWN = 20
_COLUMNS = ("at", "severity", "told", "what", "owner", "alert")


@click.group("alerts", cls=AlertsGroup, invoke_without_command=True)
@click.option("--last", type=click.IntRange(min=1), help=f"How many are listed; {_SHOWN} in a table, or else all.")
@click.option("--open", "only_open", is_flag=True, help="Only what is broken now.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_context
def alerts(context: click.Context, last: int | None, only_open: bool, form: str) -> None:
    """List what was told of things that broke, the newest last.

    `lakehouse alerts ID` shows one as a whole, and `ack` and `close` say what is done about it. Below the list stand
    the tables that are muted now. Times are in UTC. `lakehouse dev` is what looks and tells.
    """
    state: State = context.find_object(State)  # type: ignore[assignment]
    state.settings.make_home()
    if context.invoked_subcommand is None:
        _list(state, last, form, only_open=only_open)


alerts.params.append(verbose_option())


@command("test")
def test(state: State) -> None:
    """Send a test message through every sink.

    Each is named with whether it took the message, and the exit code is 1 where one did not.
    """
    from lakehouse.resources.routes import read_routes
    from lakehouse.resources.sinks import open_sinks

    routes, alert = read_routes(state.settings), _test_alert(state)
    failed = []
    for sink in open_sinks(state.settings, routes.urls, logging.getLogger("lakehouse.alerts")).values():
        try:
            with state.progress(f"Sending to {sink.name}"):
                sink.send(alert)
        except Exception as error:
            # Whatever a service raises, the others are to be tried too.
            failed.append(sink.name)
            click.echo(f"FAIL  {sink.name}  {error if isinstance(error, LakehouseError) else type(error).__name__}")
        else:
            click.echo(f"ok    {sink.name}  took alert {alert.alert_id}")
    if not routes.urls:
        click.echo("Nobody else is told: set LAKEHOUSE_ALERT_URLS, or write routes into alerts.toml in the home.")
    if failed:
        raise LakehouseError(f"{count(len(failed), 'sink')} did not take the message: {', '.join(failed)}.")


for _one in (test, show, ack, close):
    alerts.add_command(_one)


@command("mute")
@click.argument("name", metavar="TABLE")
@click.option("--until", metavar="MOMENT", help="When it ends: 2h, or 2026-12-01T08:00+08:00.")
@why_option("Why; it is shown with the alerts.", required=False)
@by_option
@click.option("--off", is_flag=True, help="End it now.")
def mute(state: State, name: str, until: str | None, why: str, by: str, off: bool) -> None:
    """Tell nobody of a table until a moment.

    TABLE may be a pattern, such as 'silver.*'. What breaks meanwhile is recorded, and told at that moment where it is
    still broken.
    """
    from lakehouse.monitoring.mutes import Mute, add_mute

    now = datetime.now(UTC)
    named = _muted_tables(state, name)
    if off == (until is not None):
        raise UsageError("Until when? Expected --until with a moment, or --off.")
    ends = now if off else coming_moment("--until", until or "", now)
    add_mute(state.settings, Mute(named, ends, by, why, now))
    if not off:
        click.echo(f"{named} is muted until {_utc(ends)}; it ends by itself.")
        return
    still = _still_muting(state, named, now)
    if not still:
        click.echo(f"{named} is muted no more.")
    for one in still:
        which = (
            f"{named} is still muted by {one.table}" if fnmatchcase(named, one.table) else f"{one.table} is still muted"
        )
        click.echo(f"{which}, until {_utc(one.until)}; `lakehouse mute {quote(one.table)} --off` ends that.")


def _still_muting(state: State, named: str, now: datetime) -> "list[Mute]":
    """Return the mutes that hold for a table all the same, or for some tables of a pattern."""
    from lakehouse.monitoring.mutes import holding, read_mutes

    others = holding(read_mutes(state.settings), now)
    return [one for one in others if fnmatchcase(named, one.table) or fnmatchcase(one.table, named)]


def _muted_tables(state: State, name: str) -> str:
    if "*" not in name:
        return state.declared_table(name).name
    if not any(fnmatchcase(known, plain_name(name)) for known in state.declared):
        raise UsageError(f"{name} is the pattern of no table; expected such as 'silver.*'.")
    return plain_name(name)


def _list(state: State, last: int | None, form: str, *, only_open: bool) -> None:
    from lakehouse.monitoring.alert_state import read_state
    from lakehouse.monitoring.mutes import holding, read_mutes
    from lakehouse.monitoring.record import read_alerts

    known = read_state(state.settings)
    open_now = set(known.open)
    found = [one for one in read_alerts(state.settings) if not only_open or one.key in open_now]
    if only_open:
        found = list({one.key: one for one in found}.values())
    if form == "json":
        # What a program reads is whole unless it asks for less.
        records = [record_of(one, is_open=one.key in open_now) for one in (found[-last:] if last else found)]
        columns = [Column(name) for name in records[0]] if records else []
        click.echo(json_array(columns, [[*record.values()] for record in records]))
        return
    shown = found[-(last or _SHOWN) :]
    click.echo(_table(shown, open_now))
    if known.is_first:
        click.echo("Nobody looked yet for what is broken; `lakehouse dev` does.")
    if known.undelivered:
        waiting = count(known.undelivered, "message")
        click.echo(f"{waiting} on the way, to a service that failed or in the next summary; `lakehouse dev` sends.")
    for line in _mutes(holding(read_mutes(state.settings), datetime.now(UTC))):
        click.echo(line)


def _table(shown: "Iterable[Alert]", open_now: set[str]) -> str:
    rows = [
        [
            _utc(one.at),
            one.severity,
            f"{one.saying}{', muted' if one.muted else ''}",
            one.title,
            one.owner,
            one.alert_id,
        ]
        for one in shown
    ]
    footer = f"{count(len(rows), 'alert')}; {count(len(open_now), 'thing')} broken now"
    return table([Column(name) for name in _COLUMNS], rows, footer=footer)


def _mutes(found: "Iterable[Mute]") -> Iterator[str]:
    for one in found:
        why = f": {one.why}" if one.why else ""
        yield f"{one.table} is muted until {_utc(one.until)} by {one.by}, since {_utc(one.at)}{why}"


def _test_alert(state: State) -> "Alert":
    from lakehouse.resources.alert import Alert, alert_id

    now = datetime.now(UTC)
    lines = ("Somebody tried whether alerts arrive. Nothing broke.", f"Home: {state.settings.home}")
    return Alert(alert_id("test", now), "test", "test", "warn", now, "Test of the lakehouse's alerts", lines)


def _utc(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
