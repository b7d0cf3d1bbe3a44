"""The option that says where declarations are written to, and what is said of those that were."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from lakehouse.scaffolding.project import Project


def into_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Take `--into`, the folder of the assets."""
    return click.option(
        "--into",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help="Folder of the assets, a Python package; lakehouse/assets where it is left out.",
    )(function)


def project_in(into: Path | None) -> "Project":
    """Return the project that a folder of assets belongs to; where none is given, that of the
    lakehouse itself.
    """
    from lakehouse import assets
    from lakehouse.scaffolding.project import project_of

    if into is not None:
        return project_of(into)
    (folder,) = assets.__path__
    return project_of(Path(folder), package=assets.__name__)


def say_written(texts: Iterable[Path], written: Iterable[Path]) -> None:
    """Say which files were written, and which were there already."""
    new = set(written)
    for path in texts:
        verb = "wrote" if path in new else "unchanged"
        click.echo(f"{verb} {_near(path)}")


def _near(path: Path) -> str:
    """Return a path as it is typed from the working directory, where it lies below that."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
