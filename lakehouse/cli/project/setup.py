"""`lakehouse setup`: downloads and creates what Spark needs."""

import click

from lakehouse.cli.call_context import State, command


@command("setup")
@click.option("--no-archive", is_flag=True, help="Fetch the jars only.")
def setup(state: State, no_archive: bool) -> None:
    """Fetch Spark's jars, and archive Java's classes, once.

    With the archive of about 190 MB, Spark starts faster. If everything exists, it reports that
    and uses no network.
    """
    from rich.console import Console

    from lakehouse.spark.install import set_up

    set_up(state.settings, Console(stderr=True), archive=not no_archive)
