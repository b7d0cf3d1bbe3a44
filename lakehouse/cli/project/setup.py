"""`lakehouse setup`: downloads and creates what Spark needs."""

from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command

if TYPE_CHECKING:
    from rich.console import Console

    from lakehouse.settings import Settings
    from lakehouse.spark.jvm import Jvm


@command("setup")
@click.option("--no-archive", is_flag=True, help="Fetch the jars only.")
def setup(state: State, no_archive: bool) -> None:
    """Fetch Spark's jars, and archive Java's classes, once.

    With the archive of about 190 MB, Spark starts faster. If everything exists, it reports that
    and uses no network.
    """
    from rich.console import Console

    from lakehouse.spark import jars, jvm
    from lakehouse.spark.jar_download import fetch
    from lakehouse.spark.jvm_class_archive import archive_problem

    settings, console = state.settings, Console(stderr=True)
    chosen = jvm.find(settings)
    with console.status("Spark's jars"):
        fetch(
            settings,
            lambda number: console.print(
                f"Fetching {number} of Spark's jars, of up to 130 MB …", highlight=False
            ),
        )
    with_archive = not settings.spark_remote and jars.reads_catalog_file(settings.iceberg)
    if with_archive and not no_archive and archive_problem(settings, chosen):
        _archive_classes(settings, chosen, console)
    console.print(
        f"Java {chosen.version} (from {chosen.source}) and Spark's jars are installed.",
        highlight=False,
    )


def _archive_classes(settings: "Settings", chosen: "Jvm", console: "Console") -> None:
    """Make the archive of Java's classes; without it, Spark only starts more slowly."""
    from lakehouse.spark.jvm_class_archive import make_archive

    console.print(
        "Reading Java's classes once, for half a minute, so that each start of Spark is"
        " quicker …",
        soft_wrap=True,
    )
    if problem := make_archive(settings, chosen):
        console.print(
            f"There is no archive of them ({problem}): Spark reads them at each start.",
            highlight=False,
        )
