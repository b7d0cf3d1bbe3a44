"""`lakehouse alerts close`: what an alert is about is over."""

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.decision_options import by_option, why_option


@command("close")
@click.argument("alert_id", metavar="ID")
@why_option("Why it is over; those who were told of it are told this too.")
@by_option
def close(state: State, alert_id: str, why: str, by: str) -> None:
    """Say that what an alert is about is over, until it breaks anew.

    Such as rows in quarantine that nobody will correct: more of them open it again.
    """
    from lakehouse.monitoring.acknowledgements import close as end
    from lakehouse.monitoring.acknowledgements import find_alert

    incident = end(state.settings, find_alert(state.settings, alert_id), by=by, why=why)
    click.echo(f"{incident.firing.title}: closed by {by}; it opens again where it breaks anew.")
