"""`lakehouse pack-python`: the packages that Python on a cluster needs, as one file."""

import click

from lakehouse.cli.call_context import State, command
from lakehouse.errors import UsageError
from lakehouse.setting_forms import archive_place, is_archive
from lakehouse.storage.byte_sizes import size_text

_FILE = "executors.tar.gz"


@command("pack-python")
@click.argument("file", required=False)
@click.option(
    "--with",
    "more",
    metavar="PACKAGE",
    multiple=True,
    help="Another package that executors need, such as pandas; may be said several times.",
)
def pack_python(state: State, file: str | None, more: tuple[str, ...]) -> None:
    """Write the packages that Python on executors needs to FILE.

    FILE is a .tar.gz here or at s3://bucket/key; what LAKEHOUSE_EXECUTOR_ARCHIVE says, or
    executors.tar.gz in this folder, where it is left out. In it are pyarrow, numpy, boto3 and what
    these require, of the versions that are installed here and copied from here, and a program
    that runs the worker's own Python, of the minor version that this is, with them. Uses no
    network but for a bucket. With LAKEHOUSE_EXECUTOR_ARCHIVE set to it, Spark unpacks it where
    tasks run. The same packages again give the same bytes.
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
    place = archive_place(file)
    if not is_archive(place):
        raise UsageError(
            f"{file!r} is no place of an archive; expected a path or s3://bucket/key that ends in"
            " .tar.gz or .tgz, without spaces and #?%,.",
        )
    return place
