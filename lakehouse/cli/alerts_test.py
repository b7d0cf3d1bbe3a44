"""`lakehouse alerts test`: whether a message arrives at every sink."""

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.printing import count
from lakehouse.errors import LakehouseError

if TYPE_CHECKING:
    from lakehouse.orchestration.alert import Alert


@command("test")
def test_sinks(state: State) -> None:
    """Send a test message through every sink.

    Each is named with whether it received the message, and the exit code is 1 where one did not.
    """
    from lakehouse.monitoring.alert_settings import read_routes
    from lakehouse.monitoring.sinks import open_sinks

    routes, alert = read_routes(state.settings), _test_alert(state)
    failed = []
    for sink in open_sinks(
        state.settings, routes.urls, logging.getLogger("lakehouse.alerts")
    ).values():
        try:
            with state.progress(f"Sending to {sink.name}"):
                sink.send(alert)
        except Exception as error:
            # Whatever a service raises, the others are to be tried too.
            failed.append(sink.name)
            click.echo(
                f"FAIL  {sink.name} "
                f" {error if isinstance(error, LakehouseError) else type(error).__name__}"
            )
        else:
            click.echo(f"ok    {sink.name}  received alert {alert.alert_id}")
    if not routes.urls:
        click.echo(
            "Nobody else is notified: set LAKEHOUSE_ALERT_URLS, or write routes into alerts.toml in"
            " the home."
        )
    if failed:
        raise LakehouseError(
            f"{count(len(failed), 'sink')} did not receive the message: {', '.join(failed)}."
        )


def _test_alert(state: State) -> "Alert":
    from lakehouse.orchestration.alert import Alert, alert_id

    now = datetime.now(UTC)
    return Alert(
        alert_id("test", now),
        key="test",
        saying="test",
        severity="warn",
        at=now,
        title="Test of the lakehouse's alerts",
        lines=(
            "Somebody tried whether alerts arrive. Nothing failed.",
            f"Home: {state.settings.home}",
        ),
    )
