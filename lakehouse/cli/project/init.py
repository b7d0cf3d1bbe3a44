"""`lakehouse init`: creates a project that depends on this package."""

import shlex
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.call_context import State, command
from lakehouse.errors import UsageError

if TYPE_CHECKING:
    from lakehouse.scaffolding.assets_package import AssetsFolder
    from lakehouse.scaffolding.begin_project import BegunProject


def into_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option `--into`, the folder of the assets."""
    return click.option(
        "--into",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help="Folder of the assets, a Python package; default: that of the project.",
    )(function)


def folder_in(state: State, into: Path | None) -> "AssetsFolder":
    """Return the assets folder; default: the folder of the project."""
    from lakehouse.scaffolding.assets_package import assets_folder_of

    if into is not None:
        return assets_folder_of(into)
    package = state.project.package
    return assets_folder_of(Path(import_module(package).__path__[0]), package=package)


def print_written(texts: Iterable[Path], written: Iterable[Path]) -> None:
    """Print which files were written and which existed."""
    new = set(written)
    for path in texts:
        verb = "wrote" if path in new else "unchanged"
        click.echo(f"{verb} {near(path)}")


def near(path: Path) -> str:
    """Return a path relative to the working directory if it is below it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


@command("init")
@click.argument("folder", type=click.Path(file_okay=False))
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
