"""`lakehouse dev`: the Dagster UI on a home, and a Spark kept warm for it."""

import click

from lakehouse.cli.call_context import State, command
from lakehouse.errors import UsageError

UI_HOST = "127.0.0.1"
UI_PORT = 3000


@command("dev")
@click.option("--host", default=UI_HOST, show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help=f"Port to listen on.  [default: {UI_PORT}, or the next free one]",
)
def dev(state: State, host: str, port: int | None) -> None:
    """Open the Dagster UI on this home, and keep a Spark warm.

    Sensors and schedules run as long as it is open; commands beside it use its Spark. Where
    SPARK_REMOTE names one, and on Spark 3.5, none is kept. Ctrl-C ends all of it. Printed is what
    happened: runs, what they made, and what failed; with --verbose each look of a sensor too.
    """
    from lakehouse.cli.dev_processes.dev_server import serve

    if not host.strip():
        raise UsageError(
            "--host is empty; expected an address of this machine.",
            next_step=f"{UI_HOST} is the usual one.",
        )
    chosen = UI_PORT if port is None else port
    serve(
        state.settings,
        host,
        chosen,
        state.progress,
        is_fixed=port is not None,
        tells_all=state.verbose,
    )
