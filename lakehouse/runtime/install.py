"""`lakehouse setup`: a JVM, Spark's jars and the class archive."""

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from lakehouse.runtime import jars, jvm
from lakehouse.runtime.jar_download import fetch
from lakehouse.runtime.jvm_class_archive import archive_problem, make_archive
from lakehouse.settings import Settings


def set_up(settings: Settings, console: Console, *, archive: bool = True) -> None:
    """Choose the JVM, fetch missing or damaged jars, and archive classes; raises SetupError."""
    chosen = jvm.find(settings)
    total_bytes = sum(jar.size_bytes for jar in jars.pinned(settings))
    if not console.is_terminal and any(
        jars.size_problem(jar, jars.path(settings, jar)) for jar in jars.pinned(settings)
    ):
        console.print(f"Fetching Spark's jars, {total_bytes / 1e6:.0f} MB …", highlight=False)
    columns = (TextColumn("Spark's jars"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=total_bytes)
        fetch(
            settings,
            lambda done_bytes: bar.update(task, completed=min(done_bytes, total_bytes)),
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
