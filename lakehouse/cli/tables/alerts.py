"""`lakehouse alerts`: the sent messages, and what operators do about them."""

import json
import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.call_context import State, command, verbose_option
from lakehouse.cli.options import ShowGroup, by_option, why_option
from lakehouse.cli.output.cell_values import columns_named, plain_json, utc_seconds
from lakehouse.cli.output.printing import count, table
from lakehouse.cli.output.record_output import print_records, table_or_json, text_or_json
from lakehouse.errors import LakehouseError

if TYPE_CHECKING:
    from lakehouse.alerts.alert_state import AlertState
    from lakehouse.alerts.incidents import Alert


_SHOWN = 20
_COLUMNS = ("at", "severity", "event", "what", "owner", "alert")


@click.group("alerts", cls=ShowGroup, invoke_without_command=True)
@click.option(
    "--last",
    type=click.IntRange(min=1),
    help=f"Number of messages; default {_SHOWN} in a table, all in JSON.",
)
@click.option("--open", "only_open", is_flag=True, help="Only messages of open incidents.")
@table_or_json
@click.pass_context
def alerts(context: click.Context, last: int | None, only_open: bool, form: str) -> None:
    """List the alerts, the newest last.

    `lakehouse alerts ID` shows one alert. Below the list are the muted tables. Times are in
    UTC. `lakehouse dev` monitors and sends.
    """
    state: State = context.find_object(State)  # type: ignore[assignment]
    state.settings.make_home()
    if context.invoked_subcommand is None:
        _list(state, last, form, only_open=only_open)


alerts.params.append(verbose_option())


def _list(state: State, last: int | None, form: str, *, only_open: bool) -> None:
    from lakehouse.alerts.alert_state import read_state
    from lakehouse.alerts.sinks import read_alerts

    known, listed = read_state(state.settings), read_alerts(state.settings)
    if only_open:
        newest = {alert.key: alert for alert in listed if alert.key in known.open}
        # An incident that opened again can have no message yet.
        listed = [alert for alert in newest.values() if alert.saying != "recovered"]
    if form == "json":
        shown = listed[-last:] if last else listed
        print_records(_record(alert, known) for alert in shown)
        return
    click.echo(_table(listed, last or _SHOWN, known))
    for line in _notes(known):
        click.echo(line)


def _table(listed: "Sequence[Alert]", most: int, known: "AlertState") -> str:
    rows = [
        [
            utc_seconds(alert.at),
            alert.severity,
            f"{alert.saying}{', muted' if alert.muted else ''}",
            alert.title,
            alert.owner,
            alert.alert_id,
        ]
        for alert in listed[-most:]
    ]
    number = count(len(listed), "alert")
    if len(listed) > most:
        number = f"{most} of {number}, --last {len(listed)} lists all"
    footer = f"{number}; {count(len(known.open), 'incident')} open"
    return table(columns_named(_COLUMNS), rows, footer=footer)


def _notes(known: "AlertState") -> Iterator[str]:
    if known.is_first:
        yield "Nothing was monitored yet; `lakehouse dev` does."
    if known.undelivered:
        yield f"{count(known.undelivered, 'message')} undelivered; `lakehouse dev` sends."
    for mute in known.current_mutes(datetime.now(UTC)):
        why = f": {mute.why}" if mute.why else ""
        until, since = utc_seconds(mute.until), utc_seconds(mute.at)
        yield f"{mute.table} is muted until {until} by {mute.by}, since {since}{why}"


def _record(alert: "Alert", known: "AlertState") -> dict[str, Any]:
    return {**plain_json(alert.to_json()), "is_open": alert.key in known.open}


@command("test")
def test_sinks(state: State) -> None:
    """Send a test message to every recipient.

    Lists which recipients received it; the exit code is 1 if one did not.
    """
    from lakehouse.alerts.alert_routes import read_routes
    from lakehouse.alerts.sinks import describe_failure, open_sinks

    routes, alert = read_routes(state.settings), _test_alert(state)
    sinks = open_sinks(state.settings, routes.urls, logging.getLogger("lakehouse.alerts"))
    failed = []
    for sink in sinks.values():
        try:
            with state.progress(f"Sending to {sink.name}"):
                sink.send(alert)
        except Exception as error:
            # Any error of a service: the other recipients are tested too.
            failed.append(sink.name)
            click.echo(f"FAIL  {sink.name}  {describe_failure(error)}")
        else:
            click.echo(f"ok    {sink.name}  received alert {alert.alert_id}")
    if not routes.urls:
        click.echo(
            "There are no other recipients: set LAKEHOUSE_ALERT_URLS, or add routes to"
            " alerts.toml in the home."
        )
    if failed:
        raise LakehouseError(
            f"{count(len(failed), 'recipient')} did not receive the message:"
            f" {', '.join(failed)}."
        )


def _test_alert(state: State) -> "Alert":
    from lakehouse.alerts.incidents import Alert, alert_id

    now = datetime.now(UTC)
    return Alert(
        alert_id("test", now),
        key="test",
        saying="test",
        severity="warn",
        at=now,
        title="Test of the lakehouse's alerts",
        lines=("This is a test; nothing failed.", f"Home: {state.settings.home}"),
    )


@command("show")
@click.argument("alert_id", metavar="ID")
@text_or_json
def show(state: State, alert_id: str, form: str) -> None:
    """Show one alert.

    ID is the id of the alert, or its beginning.
    """
    from lakehouse.alerts.alert_state import read_state
    from lakehouse.alerts.operator_actions import find_alert

    alert, known = find_alert(state.settings, alert_id), read_state(state.settings)
    if form == "json":
        click.echo(json.dumps(_record(alert, known), ensure_ascii=False, indent=1))
        return
    incident = "open now" if alert.key in known.open else "not open now"
    click.echo(alert.title)
    click.echo(f"{utc_seconds(alert.at)}, {alert.severity}, {alert.saying}; {incident}")
    click.echo(alert.text)
    if alert.muted:
        click.echo(f"Muted {alert.muted}")


@command("ack")
@click.argument("alert_id", metavar="ID")
@why_option("Why, or what is done about it; it is shown with the alert.")
@by_option
def ack(state: State, alert_id: str, why: str, by: str) -> None:
    """Acknowledge the incident of an alert.

    It remains open and is not repeated; a message is sent if it grows, and when it is resolved.
    """
    from lakehouse.alerts.operator_actions import acknowledge, find_alert

    incident = acknowledge(state.settings, find_alert(state.settings, alert_id), by=by, why=why)
    click.echo(
        f"{incident.firing.title}: acknowledged by {by}; it is not repeated, and a message is"
        " sent when it is resolved."
    )


@command("close")
@click.argument("alert_id", metavar="ID")
@why_option("Why; recipients of the alert are notified.")
@by_option
def close(state: State, alert_id: str, why: str, by: str) -> None:
    """Close the incident of an alert, until it fires again.

    For example rows in quarantine that no one will correct: further rows open it again.
    """
    from lakehouse.alerts.operator_actions import close as close_incident
    from lakehouse.alerts.operator_actions import find_alert

    alert = find_alert(state.settings, alert_id)
    incident = close_incident(state.settings, alert, by=by, why=why)
    click.echo(f"{incident.firing.title}: closed by {by}; it opens again if it recurs.")


for _command in (test_sinks, show, ack, close):
    alerts.add_command(_command)
