"""State of a command: settings, engine and declarations, each created on first use."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.output.progress import Progress
from lakehouse.errors import LakehouseError, TableNotFound, UsageError
from lakehouse.settings import Settings
from lakehouse.tables.quoting import meant_name

if TYPE_CHECKING:
    from lakehouse.iceberg.catalog.catalog import Catalog
    from lakehouse.iceberg.catalog.engine import Engine
    from lakehouse.orchestration.table_function import TableFunction
    from lakehouse.project import Project
    from lakehouse.tables.feed import Feed
    from lakehouse.tables.table import IcebergTable


def tables_there(catalog: "Catalog", read_declared: Callable[[], Iterable[str]]) -> list[str]:
    """Return the existing tables; in Glue, only in namespaces of declared tables, if valid."""
    if catalog.is_embedded:
        return catalog.tables()
    try:
        declared = read_declared()
    except LakehouseError:
        return catalog.tables()
    return catalog.tables(declared)


_LISTED = "`lakehouse status` lists the tables."


@dataclass
class State:
    """State of one call of the command line."""

    verbose: bool = False
    progress: Progress = field(default_factory=Progress)

    @cached_property
    def settings(self) -> Settings:
        """Settings from the environment."""
        return Settings.from_env()

    @cached_property
    def engine(self) -> "Engine":
        """The catalog, and Spark on demand."""
        from lakehouse.orchestration.deployment import open_engine

        return open_engine(self.settings)

    @cached_property
    def project(self) -> "Project":
        """The project of the working directory, or the samples."""
        from lakehouse.project import load_project

        return load_project(self.settings)

    @cached_property
    def declared(self) -> "Mapping[str, IcebergTable]":
        """Declared tables and their quarantines by name."""
        return self.project.tables

    @cached_property
    def feeds(self) -> "Mapping[str, Feed]":
        """Declared feeds by name."""
        return self.project.feeds

    @cached_property
    def functions(self) -> "Mapping[str, TableFunction]":
        """Functions of declared tables by table name."""
        from lakehouse.orchestration.discovery import declared_assets
        from lakehouse.orchestration.table_function import functions_by_table

        return functions_by_table(declared_assets(self.project.modules))

    def start_spark(self) -> None:
        """Start Spark or connect to a running server, and show which."""
        from lakehouse.spark.spark_server import with_server

        is_there = with_server(self.settings).spark_remote is not None
        with self.progress("Connecting to Spark" if is_there else "Starting Spark"):
            _ = self.engine.spark

    def feed(self, name: str) -> "Feed":
        """Return a feed; raises UsageError with a similar name."""
        if name not in self.feeds:
            raise UsageError(f"There is no feed {name!r}; {meant_name(name, self.feeds)}")
        return self.feeds[name]

    def declared_table(self, name: str) -> "IcebergTable":
        """Return a declared table; raises UsageError with a similar name."""
        table = self.declared.get(plain_name(name))
        if table is None:
            raise UsageError(
                f"{name!r} is not a declared table;"
                f" {meant_name(plain_name(name), self.declared)}"
            )
        return table

    def computed_table(self, name: str) -> "IcebergTable":
        """Return a declared table that is not a quarantine; raises UsageError otherwise."""
        table = self.declared_table(name)
        for owner in self.declared.values():
            if owner.quarantine and owner.quarantine.name == table.name:
                raise UsageError(
                    f"{table.name} is the quarantine of {owner.name} and filled with it;"
                    " expected a table that is computed.",
                    next_step=f"Say {owner.name}.",
                )
        return table

    def table_function(self, name: str) -> "TableFunction":
        """Return the function of a table; raises UsageError if it has none."""
        table = self.computed_table(name)
        function = self.functions.get(table.name)
        if function is None:
            raise UsageError(
                f"{table.name} is not computed by a function of rows; expected a table that an"
                " iceberg_asset or a feed_asset computes.",
                next_step=_LISTED,
            )
        return replace(function, table=table)

    def existing_table(self, name: str) -> str:
        """Return the name of a table in the catalog, declared or not.

        :raises UsageError: unknown name; suggests a similar one.
        :raises TableNotFound: declared, but no run has created it yet.
        """
        plain = plain_name(name)
        # Do not query impossible names: SQLite rejects unpaired surrogates.
        is_possible = all(plain.partition(".")) and plain.isprintable()
        if is_possible and self.engine.catalog.has(plain):
            return plain
        if plain in self._declared_names():
            raise not_created_yet(plain)
        raise UsageError(f"There is no table {plain}; {meant_name(plain, self.known_tables())}")

    def known_tables(self) -> set[str]:
        """Names of existing and declared tables; only existing ones if a declaration is invalid."""
        return {*self.tables_there(), *self._declared_names()}

    def tables_there(self) -> list[str]:
        """Names of existing tables; in Glue, only in namespaces of declared tables."""
        return tables_there(self.engine.catalog, lambda: self.declared)

    def _declared_names(self) -> set[str]:
        try:
            return set(self.declared)
        except LakehouseError:
            # Reading a table needs no declaration; commands that need them report the error.
            return set()


def not_created_yet(name: str) -> TableNotFound:
    """Return the error for a declared table that no run has created."""
    return TableNotFound(
        f"{name} is declared, and not there yet.",
        next_step="`lakehouse ingest` makes the tables of a feed.",
    )


def plain_name(name: str) -> str:
    """Return a table name without the catalog name."""
    from lakehouse.iceberg.catalog.catalog import CATALOG_NAME

    parts = name.replace("`", "").split(".")
    return ".".join(parts[1:] if len(parts) == 3 and parts[0] == CATALOG_NAME else parts)


def command(name: str, **options: Any) -> Callable[[Callable[..., None]], click.Command]:
    """Create a command: passes `State` first, and accepts `--verbose` after its name."""

    def decorate(function: Callable[..., None]) -> click.Command:
        with_state = click.pass_obj(function)
        # Click's decorator with options is untyped.
        result: click.Command = click.command(name, **options)(with_state)  # type: ignore[no-untyped-call]
        result.params.append(verbose_option())
        return result

    return decorate


def verbose_option() -> click.Option:
    """Return the option that shows the traceback of an error."""
    return click.Option(
        ["--verbose"],
        is_flag=True,
        expose_value=False,
        callback=_set_verbose,
        help="Show the traceback of an error.",
    )


def _set_verbose(context: click.Context, _: click.Parameter, is_verbose: bool) -> None:
    context.find_object(State).verbose |= is_verbose  # type: ignore[union-attr]
