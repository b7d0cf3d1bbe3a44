"""The option `--into` for the assets folder, and output about written declarations."""

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.call_context import State

if TYPE_CHECKING:
    from lakehouse.scaffolding.assets_package import AssetsFolder


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
