"""`lakehouse doctor`, `setup` and `dev`: what the lakehouse needs of this machine, and its UI."""

import click

from lakehouse.cli.state import State, command

UI_HOST = "127.0.0.1"
UI_PORT = 3000


@command("setup")
def setup(state: State) -> None:
    """Fetch Spark's jars and choose the JVM; where all is there, it says so and needs no network."""
    from rich.console import Console

    from lakehouse.resources.set_up import set_up

    set_up(state.settings, Console(stderr=True))


@command("doctor")
def doctor(state: State) -> None:
    """Check what the lakehouse needs of this machine; each line that fails says what to do."""
    raise NotImplementedError


@command("dev")
@click.option("--host", default=UI_HOST, show_default=True, help="Address to listen on.")
@click.option("--port", default=UI_PORT, show_default=True, help="Port to listen on.")
def dev(state: State, host: str, port: int) -> None:
    """Open the Dagster UI on this home, with sensors and schedules; Ctrl-C ends it and all that it started."""
    from lakehouse.cli.dev_server import serve

    code = serve(state.settings, host, port)
    click.get_current_context().exit(code)
