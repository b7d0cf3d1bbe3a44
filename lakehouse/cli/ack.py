"""`lakehouse alerts ack`: somebody looks after what an alert is about."""

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.decision_options import by_option, why_option


@command("ack")
@click.argument("alert_id", metavar="ID")
@why_option("Why, or what is done about it; it is shown with the alert.")
@by_option
def ack(state: State, alert_id: str, why: str, by: str) -> None:
    """Say that somebody looks after what an alert is about.

    It stays open and is not repeated; that it grows, and that it is over, is told.
    """
    from lakehouse.monitoring.acknowledgements import acknowledge, find_alert

    incident = acknowledge(state.settings, find_alert(state.settings, alert_id), by=by, why=why)
    click.echo(
        f"{incident.firing.title}: acknowledged by {by}; it is not repeated, and told when it"
        " is over."
    )
