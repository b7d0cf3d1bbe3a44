"""`lakehouse alerts ID`: one alert as a whole."""

import json
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.cell_values import plain_json, utc_seconds
from lakehouse.cli.output.records import text_or_json

if TYPE_CHECKING:
    from lakehouse.orchestration.alert import Alert


@command("show")
@click.argument("alert_id", metavar="ID")
@text_or_json
def show(state: State, alert_id: str, form: str) -> None:
    """Show one alert as a whole.

    ID is that of the alert, or how it begins.
    """
    from lakehouse.monitoring.acknowledgements import find_alert
    from lakehouse.monitoring.alert_state import read_state

    alert = find_alert(state.settings, alert_id)
    is_open = alert.key in read_state(state.settings).open
    if form == "json":
        click.echo(json.dumps(record_of(alert, is_open=is_open), ensure_ascii=False, indent=1))
        return
    click.echo(alert.title)
    click.echo(
        f"{utc_seconds(alert.at)}, {alert.severity}, {alert.saying};"
        f" {_describe_incident(alert, is_open=is_open)}"
    )
    click.echo(alert.text)
    if alert.muted:
        click.echo(f"Muted {alert.muted}")


def record_of(alert: "Alert", *, is_open: bool) -> dict[str, Any]:
    """Return an alert as JSON has it."""
    return {**plain_json(alert.to_json()), "is_open": is_open}


def _describe_incident(alert: "Alert", *, is_open: bool) -> str:
    if alert.saying in ("summary", "test"):
        return "of no incident of its own"
    return "open now" if is_open else "resolved now"
