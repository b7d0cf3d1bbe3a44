"""`lakehouse pack-python`: packs Python packages for executors into one file."""

import re

import click

from lakehouse.cli.call_context import State, command
from lakehouse.errors import UsageError
from lakehouse.setting_forms import ARCHIVE, absolute_place
from lakehouse.storage.byte_sizes import size_text

_FILE = "executors.tar.gz"


@command("pack-python")
@click.argument("file", required=False)
@click.option(
    "--with",
    "more",
    metavar="PACKAGE",
    multiple=True,
    help="Another package that executors need, such as pandas; repeatable.",
)
def pack_python(state: State, file: str | None, more: tuple[str, ...]) -> None:
    """Write the packages that Python on executors needs to FILE.

    FILE is a local .tar.gz or s3://bucket/key; default: LAKEHOUSE_EXECUTOR_ARCHIVE, else
    executors.tar.gz in this folder. It contains the installed versions of pyarrow, numpy, boto3 and
    their dependencies, and a launcher that runs the worker's own Python of the same minor
    version with them. Network is used only for a bucket. If LAKEHOUSE_EXECUTOR_ARCHIVE is set,
    Spark unpacks it for tasks. The same packages give the same bytes.
    """
    from lakehouse.runtime.executor_archive import write_archive

    settings = state.settings
    place = _place(file or settings.cluster.executor_archive or _FILE)
    with state.progress("Packing packages"):
        manifest, size_bytes = write_archive(settings, place, more)
    click.echo(f"{place}: {manifest.describe()}; {size_text(size_bytes)}")
    if place != settings.cluster.executor_archive:
        click.echo(f"Executors have it with LAKEHOUSE_EXECUTOR_ARCHIVE={place}")


def _place(file: str) -> str:
    place = absolute_place(file)
    if not re.fullmatch(ARCHIVE.pattern, place):
        raise UsageError(f"{file!r} is not an archive; expected {ARCHIVE.expected}.")
    return place
