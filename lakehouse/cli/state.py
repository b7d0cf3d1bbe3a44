"""What the commands of one call share: settings, the engine, and what is declared; each made when first asked for.

Nothing here imports Spark or Dagster until a command needs it, so that looking is quick.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.progress import Progress
from lakehouse.errors import UsageError
from lakehouse.settings import Settings

if TYPE_CHECKING:
    from lakehouse.iceberg.engine import Engine
    from lakehouse.iceberg.table import IcebergTable
    from lakehouse.ingestion.feed import Feed


@dataclass
class State:
    """One call of the command line."""

    verbose: bool = False
    progress: Progress = field(default_factory=Progress)

    @cached_property
    def settings(self) -> Settings:
        """What the environment says."""
        return Settings.from_env()

    @cached_property
    def engine(self) -> "Engine":
        """The catalog, and Spark on demand."""
        from lakehouse.resources.engine import open_engine

        return open_engine(self.settings)

    @cached_property
    def declared(self) -> "Mapping[str, IcebergTable]":
        """The declared tables by name, and the quarantines that follow from them."""
        from lakehouse.definitions import TABLES

        return TABLES

    @cached_property
    def feeds(self) -> "Mapping[str, Feed]":
        """The declared feeds by name."""
        from lakehouse.definitions import FEEDS

        return FEEDS

    def feed(self, name: str) -> "Feed":
        """Return a feed by name.

        :raises UsageError: when none is called so; lists those that are.
        """
        if name not in self.feeds:
            raise UsageError(f"There is no feed {name}; expected one of {', '.join(sorted(self.feeds))}.")
        return self.feeds[name]

    def declared_table(self, name: str) -> "IcebergTable":
        """Return a declared table by name.

        :raises UsageError: when none is called so; lists those that are.
        """
        found = self.declared.get(plain_name(name))
        if found is None:
            raise UsageError(f"{name} is not a declared table; expected one of {', '.join(sorted(self.declared))}.")
        return found


def plain_name(name: str) -> str:
    """Return `silver.fruits` for `lakehouse.silver.fruits` too."""
    from lakehouse.iceberg.catalog import CATALOG_NAME

    parts = name.replace("`", "").split(".")
    return ".".join(parts[1:] if len(parts) == 3 and parts[0] == CATALOG_NAME else parts)


def full_name(name: str) -> str:
    """Return `silver.fruits` for `lakehouse.silver.fruits` too, of a table that need not be declared.

    :raises UsageError: when it has no layer.
    """
    plain = plain_name(name)
    if not all(plain.partition(".")):
        raise UsageError(
            f"{name!r} is not the name of a table; expected its layer too, such as silver.fruits.",
            next_step="`lakehouse status` lists the tables.",
        )
    return plain


def command(name: str, **options: Any) -> Callable[[Callable[..., None]], click.Command]:
    """Make a command whose function is given the `State` first; `--verbose` is understood behind its name too."""

    def decorate(function: Callable[..., None]) -> click.Command:
        made = click.command(name, **options)(click.pass_obj(function))
        made.params.append(verbose_option())
        return made

    return decorate


def verbose_option() -> click.Option:
    """Return the option that shows the traceback of an error."""
    return click.Option(
        ["--verbose"], is_flag=True, expose_value=False, callback=_set_verbose, help="Show the traceback of an error."
    )


def _set_verbose(context: click.Context, _: click.Parameter, given: bool) -> None:
    context.find_object(State).verbose |= given  # type: ignore[union-attr]
