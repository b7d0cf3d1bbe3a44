"""`lakehouse init`: creates a project that depends on this package."""

import shlex
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lakehouse.cli.assets_folder import near
from lakehouse.cli.call_context import State, command
from lakehouse.errors import UsageError

if TYPE_CHECKING:
    from lakehouse.scaffolding.begin_project import BegunProject


@command("init")
@click.argument("folder")
@click.option("--name", help="Name of its package; default: the name of the folder.")
def init(state: State, folder: str, name: str | None) -> None:
    """Make FOLDER a project of your own.

    The project has a package for tables, Dagster definitions, tests, a Makefile and continuous
    integration, without the sample pipelines. Commands in this folder and below use the
    project. Existing files are not overwritten; a second run creates missing files.
    """
    from lakehouse.scaffolding.begin_project import begin_project

    if not folder.strip():
        raise UsageError("FOLDER is empty; expected the folder of the project.")
    root = Path(folder)
    with state.progress(f"Making {near(root.absolute())} a project"):
        begun = begin_project(root, name, version("lakehouse"))
    _print_files(begun)
    click.echo("Next:")
    if root.resolve() != Path.cwd():
        click.echo(f"  cd {shlex.quote(folder)}")
    click.echo("  lakehouse setup")
    click.echo("  lakehouse new feed FILE...")


def _print_files(begun: "BegunProject") -> None:
    for path in begun.texts:
        verb = "wrote" if path in begun.written else "unchanged"
        click.echo(f"{'kept' if path in begun.kept else verb} {path}")
    for path in begun.kept:
        if path.name == ".gitignore" and b".lakehouse" not in path.read_bytes():
            click.echo(f"Add .lakehouse/ to {path}: the rows of your tables are in it.")
