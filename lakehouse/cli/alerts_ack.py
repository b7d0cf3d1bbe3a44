"""`lakehouse alerts ack`: an incident that somebody looks after."""

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.why_and_by_options import by_option, why_option


@command("ack")
@click.argument("alert_id", metavar="ID")
@why_option("Why, or what is done about it; it is shown with the alert.")
@by_option
def ack(state: State, alert_id: str, why: str, by: str) -> None:
    """Acknowledge the incident of an alert.

    It stays open and is not repeated; a message says where it grows, and when it is resolved.
    """
    from lakehouse.monitoring.acknowledgements import acknowledge, find_alert

    incident = acknowledge(state.settings, find_alert(state.settings, alert_id), by=by, why=why)
    click.echo(
        f"{incident.firing.title}: acknowledged by {by}; it is not repeated, and a"
        " message says when it is resolved."
    )
