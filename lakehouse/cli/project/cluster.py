"""`lakehouse pack-python`: packs Python packages for executors into one file."""

import re

import click

from lakehouse.cli.call_context import State, command
from lakehouse.errors import UsageError
from lakehouse.settings.setting_forms import ARCHIVE, absolute_place
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
    from lakehouse.spark.executor_archive import platform_here, python_here, write_archive

    settings = state.settings
    place = _place(file or settings.cluster.executor_archive or _FILE)
    with state.progress("Packing packages"):
        versions, size_bytes = write_archive(settings, place, more)
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    click.echo(
        f"{place}: {packages}, for Python {python_here()} on {platform_here()};"
        f" {size_text(size_bytes)}"
    )
    if place != settings.cluster.executor_archive:
        click.echo(f"Executors have it with LAKEHOUSE_EXECUTOR_ARCHIVE={place}")


def _place(file: str) -> str:
    place = absolute_place(file)
    if not re.fullmatch(ARCHIVE.pattern, place):
        raise UsageError(f"{file!r} is not an archive; expected {ARCHIVE.expected}.")
    return place


@command("connect-conf")
@click.option(
    "--jars",
    "jar_folder",
    metavar="DIR",
    help="Folder of the jars on the server; by default, the server fetches them.",
)
def connect_conf(state: State, jar_folder: str | None) -> None:
    """Print what a Spark Connect server must be started with.

    The output is a properties file for spark-submit without credentials. On the cluster of
    LAKEHOUSE_SPARK_MASTER, it uses no more resources than a command does. `lakehouse doctor`
    checks a server that SPARK_REMOTE names.
    """
    import pyspark

    from lakehouse.spark.connect_server import (
        SERVER_CLASS,
        bounds_to_choose,
        properties_text,
        server_configuration,
    )

    settings = state.settings
    configuration = server_configuration(settings, jar_folder)
    click.echo(f"# What a Spark Connect server of Spark {pyspark.__version__} is started with.")
    click.echo(f"# spark-submit --properties-file FILE --class {SERVER_CLASS} spark-internal")
    if settings.deployment == "aws":
        click.echo("# It and its executors need credentials of AWS in their environment.")
    else:
        click.echo(f"# It and its executors have to see {settings.home} under that path.")
    click.echo(properties_text(configuration), nl=False)
    bounds = bounds_to_choose(settings, configuration)
    if bounds:
        click.echo(
            "# While it works it may take all cores of a standalone cluster, unless bounded:"
        )
    for name in bounds:
        click.echo(f"# {name}=2")
