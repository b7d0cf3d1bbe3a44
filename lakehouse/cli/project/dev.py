"""`lakehouse dev`: the Dagster UI on a home, and a Spark server for it."""

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
    """Open the Dagster UI on this home, with a warm Spark server.

    Sensors and schedules run until Ctrl-C; other commands use the Spark server meanwhile. With
    SPARK_REMOTE, and on Spark 3.5, it starts no Spark server. It prints warnings and errors, and
    with --verbose Dagster's full log.
    """
    from lakehouse.cli.dev_processes.dev_server import serve
    from lakehouse.cli.dev_processes.ui_address import UIAddress

    if not host.strip():
        raise UsageError(
            "--host is empty; expected an address of this machine.",
            next_step=f"{UI_HOST} is the usual one.",
        )
    serve(
        state.settings,
        UIAddress(host, port or UI_PORT),
        state.progress,
        is_fixed=port is not None,
        is_verbose=state.verbose,
    )
