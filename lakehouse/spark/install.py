"""`lakehouse setup`: a JVM, Spark's jars and the class archive."""

from rich.console import Console

from lakehouse.settings import Settings
from lakehouse.spark import jars, jvm
from lakehouse.spark.jar_download import fetch
from lakehouse.spark.jvm_class_archive import archive_problem, make_archive


def set_up(settings: Settings, console: Console, *, archive: bool = True) -> None:
    """Choose the JVM, fetch missing or damaged jars, and archive classes; raises SetupError."""
    chosen = jvm.find(settings)
    with console.status("Spark's jars"):
        fetch(
            settings,
            lambda number: console.print(
                f"Fetching {number} of Spark's jars, of up to 130 MB …", highlight=False
            ),
        )
    with_archive = not settings.spark_remote and jars.reads_catalog_file(settings.iceberg)
    if archive and with_archive and archive_problem(settings, chosen):
        _archive_classes(settings, chosen, console)
    console.print(
        f"Java {chosen.version} (from {chosen.source}) and Spark's jars are there.",
        highlight=False,
    )


def _archive_classes(settings: Settings, chosen: jvm.Jvm, console: Console) -> None:
    """Make the archive of Java's classes; without it all goes as well, and more slowly."""
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
