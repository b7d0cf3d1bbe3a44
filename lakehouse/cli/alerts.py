"""`lakehouse alerts`: the messages that were sent, and whether they arrive."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from lakehouse.cli.alerts_ack import ack
from lakehouse.cli.alerts_close import close
from lakehouse.cli.alerts_show import record_of, show
from lakehouse.cli.alerts_test import test_sinks
from lakehouse.cli.call_context import State, verbose_option
from lakehouse.cli.output.cell_values import columns_named, utc_seconds
from lakehouse.cli.output.printing import count, table
from lakehouse.cli.output.records import print_records, table_or_json
from lakehouse.cli.show_group import ShowGroup

if TYPE_CHECKING:
    from lakehouse.monitoring.silences import Silence
    from lakehouse.orchestration.alert import Alert

_SHOWN = 20
_COLUMNS = ("at", "severity", "event", "what", "owner", "alert")


@click.group("alerts", cls=ShowGroup, invoke_without_command=True)
@click.option(
    "--last",
    type=click.IntRange(min=1),
    help=f"How many are listed; {_SHOWN} in a table, or else all.",
)
@click.option("--open", "only_open", is_flag=True, help="Only of incidents that are open.")
@table_or_json
@click.pass_context
def alerts(context: click.Context, last: int | None, only_open: bool, form: str) -> None:
    """List the alerts, the newest last.

    `lakehouse alerts ID` shows one as a whole, and `ack` and `close` say what is done about it.
    Below the list stand the tables that are muted now. Times are in UTC. `lakehouse dev` is
    what monitors and sends.
    """
    state: State = context.find_object(State)  # type: ignore[assignment]
    state.settings.make_home()
    if context.invoked_subcommand is None:
        _list(state, last, form, only_open=only_open)


alerts.params.append(verbose_option())


for _command in (test_sinks, show, ack, close):
    alerts.add_command(_command)


def _list(state: State, last: int | None, form: str, *, only_open: bool) -> None:
    from lakehouse.monitoring.alert_log import read_alerts
    from lakehouse.monitoring.alert_state import read_state
    from lakehouse.monitoring.silences import read_silences, select_current

    known = read_state(state.settings)
    open_now = set(known.open)
    listed = read_alerts(state.settings)
    if only_open:
        newest = {alert.key: alert for alert in listed if alert.key in open_now}
        listed = list(newest.values())
    if form == "json":
        # What a program reads is whole unless it asks for less.
        shown = listed[-last:] if last else listed
        print_records(record_of(alert, is_open=alert.key in open_now) for alert in shown)
        return
    click.echo(_table(listed, last or _SHOWN, open_now))
    if known.is_first:
        click.echo("Nothing was monitored yet; `lakehouse dev` does.")
    if known.undelivered:
        waiting = count(known.undelivered, "message")
        click.echo(
            f"{waiting} on the way, to a service that failed or in the next summary; `lakehouse"
            " dev` sends."
        )
    for line in _silence_lines(
        select_current(read_silences(state.settings), datetime.now(UTC))
    ):
        click.echo(line)


def _table(listed: "Sequence[Alert]", most: int, open_now: set[str]) -> str:
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
    footer = f"{number}; {count(len(open_now), 'incident')} open"
    return table(columns_named(_COLUMNS), rows, footer=footer)


def _silence_lines(silences: "Iterable[Silence]") -> Iterator[str]:
    for silence in silences:
        why = f": {silence.why}" if silence.why else ""
        ends, made = utc_seconds(silence.until), utc_seconds(silence.at)
        yield f"{silence.table} is muted until {ends} by {silence.by}, since {made}{why}"
