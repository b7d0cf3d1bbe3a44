"""`lakehouse setup`: what Spark needs, fetched and made once."""

import click

from lakehouse.cli.call_context import State, command


@command("setup")
@click.option("--no-archive", is_flag=True, help="Fetch the jars only.")
def setup(state: State, no_archive: bool) -> None:
    """Fetch Spark's jars, and archive Java's classes, once.

    By the archive, of some 190 MB, each start of Spark is quicker. Where all is there it says so,
    and uses no network.
    """
    from rich.console import Console

    from lakehouse.runtime.install import set_up

    set_up(state.settings, Console(stderr=True), archive=not no_archive)
