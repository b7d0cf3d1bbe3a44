"""`lakehouse alerts close`: an incident that a person closes."""

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.why_and_by_options import by_option, why_option


@command("close")
@click.argument("alert_id", metavar="ID")
@why_option("Why it is over; those who were notified of it are notified of this too.")
@by_option
def close(state: State, alert_id: str, why: str, by: str) -> None:
    """Close the incident of an alert, until it fires anew.

    Such as rows in quarantine that nobody will correct: more of them open it again.
    """
    from lakehouse.monitoring.acknowledgements import close as close_incident
    from lakehouse.monitoring.acknowledgements import find_alert

    alert = find_alert(state.settings, alert_id)
    incident = close_incident(state.settings, alert, by=by, why=why)
    click.echo(f"{incident.firing.title}: closed by {by}; it opens again where it fires anew.")
