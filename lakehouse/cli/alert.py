"""`lakehouse alerts ID`, `ack` and `close`: one message as a whole, and what a person says of what it is about."""

import json
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.decided import by_option, why_option
from lakehouse.cli.state import State, command
from lakehouse.cli.values import plain_json

if TYPE_CHECKING:
    from lakehouse.resources.alert import Alert

_FORMAT = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)


class AlertsGroup(click.Group):
    """The commands of `lakehouse alerts`; any other word is the id of an alert, which is shown."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first word."""
        if args and self.get_command(ctx, args[0]) is None:
            return "show", self.get_command(ctx, "show"), args
        return super().resolve_command(ctx, args)


@command("show")
@click.argument("alert_id", metavar="ID")
@_FORMAT
def show(state: State, alert_id: str, form: str) -> None:
    """Show one alert as a whole.

    ID is that of the alert, or how it begins.
    """
    from lakehouse.monitoring.alert_state import read_state
    from lakehouse.monitoring.closing import alert_of

    alert = alert_of(state.settings, alert_id)
    is_open = alert.key in read_state(state.settings).open
    if form == "json":
        click.echo(json.dumps(record_of(alert, is_open=is_open), ensure_ascii=False, indent=1))
        return
    click.echo(alert.title)
    click.echo(f"{alert.at:%Y-%m-%d %H:%M:%SZ}, {alert.severity}, {alert.saying}; {_now(alert, is_open=is_open)}")
    click.echo(alert.text)
    if alert.muted:
        click.echo(f"Muted {alert.muted}")


@command("ack")
@click.argument("alert_id", metavar="ID")
@why_option("Why, or what is done about it; it is shown with the alert.")
@by_option
def ack(state: State, alert_id: str, why: str, by: str) -> None:
    """Say that somebody looks after what an alert is about.

    It stays open and is not repeated; that it grows, and that it is over, is told.
    """
    from lakehouse.monitoring.closing import acknowledge, alert_of

    incident = acknowledge(state.settings, alert_of(state.settings, alert_id), by=by, why=why)
    click.echo(f"{incident.broke.title}: acknowledged by {by}; it is not repeated, and told when it is over.")


@command("close")
@click.argument("alert_id", metavar="ID")
@why_option("Why it is over; those who were told of it are told this too.")
@by_option
def close(state: State, alert_id: str, why: str, by: str) -> None:
    """Say that what an alert is about is over, until it breaks anew.

    Such as rows in quarantine that nobody will correct: more of them open it again.
    """
    from lakehouse.monitoring.closing import alert_of
    from lakehouse.monitoring.closing import close as end

    incident = end(state.settings, alert_of(state.settings, alert_id), by=by, why=why)
    click.echo(f"{incident.broke.title}: closed by {by}; it opens again where it breaks anew.")


def record_of(alert: "Alert", *, is_open: bool) -> dict[str, Any]:
    """Return an alert as JSON has it."""
    found = {name: plain_json(value) for name, value in alert.to_json().items()}
    return {**found, "is_open": is_open}


def _now(alert: "Alert", *, is_open: bool) -> str:
    if alert.saying in ("summary", "test"):
        return "it is no thing of its own"
    return "broken now" if is_open else "over now"
