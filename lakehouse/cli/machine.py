"""`lakehouse doctor`, `setup` and `dev`: what the lakehouse needs of this machine, and its UI."""

import click

from lakehouse.cli.output import count
from lakehouse.cli.state import State, command
from lakehouse.errors import LakehouseError, UsageError

UI_HOST = "127.0.0.1"
UI_PORT = 3000


@command("setup")
def setup(state: State) -> None:
    """Fetch Spark's jars, once.

    Where all is there it says so, and uses no network.
    """
    from rich.console import Console

    from lakehouse.resources.set_up import set_up

    set_up(state.settings, Console(stderr=True))


@command("doctor")
def doctor(state: State) -> None:
    """Check what the lakehouse needs of this machine.

    Each line that fails says what to do, and then the exit code is 1.
    """
    from lakehouse.resources.doctor import findings

    with state.progress("Looking at this machine"):
        found = findings(state.settings)
    width = max(len(one.name) for one in found)
    for one in found:
        step = f" {one.next_step}" if one.next_step else ""
        click.echo(f"{'ok  ' if one.ok else 'FAIL'}  {one.name:{width}}  {one.found}{step}")
    failing = [one.name for one in found if not one.ok]
    if failing:
        raise LakehouseError(f"{count(len(failing), 'check')} failed: {', '.join(failing)}.")


@command("dev")
@click.option("--host", default=UI_HOST, show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(1, 65535), help=f"Port to listen on.  [default: {UI_PORT}, or the next free one]"
)
def dev(state: State, host: str, port: int | None) -> None:
    """Open the Dagster UI on this home, and keep a Spark warm for it.

    Sensors and schedules run as long as it is open; commands beside it use its Spark. Ctrl-C ends all of it.
    Printed is what happened: runs, what they made, and what failed; with --verbose each look of a sensor too.
    """
    from lakehouse.cli.dev_server import serve

    if not host.strip():
        raise UsageError(
            "--host is empty; expected an address of this machine.", next_step=f"{UI_HOST} is the usual one."
        )
    chosen = UI_PORT if port is None else port
    serve(state.settings, host, chosen, state.progress, is_fixed=port is not None, tells_all=state.verbose)
