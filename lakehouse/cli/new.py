"""`lakehouse new`: declarations from existing files and tables."""

import re
from pathlib import Path

import click

from lakehouse.cli.assets_folder import folder_in, into_option, print_written
from lakehouse.cli.call_context import State, command, verbose_option
from lakehouse.cli.new_feed import feed
from lakehouse.errors import UsageError


@click.group("new")
def new() -> None:
    """Begin a feed from its files, or a table from another one.

    Writes plain Python files to read, correct and keep; existing files are not overwritten.
    """


_NAME = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*")


@command("table")
@click.argument("name")
@click.option(
    "--from", "source", required=True, metavar="TABLE", help="What it is computed from."
)
@into_option
def table(state: State, name: str, source: str, into: Path | None) -> None:
    """Declare a table that is computed from another one.

    NAME is layer and name, such as gold.daily_sales. From a table that is written by days, the
    template aggregates by day; from other tables, it selects rows without identifying columns.
    """
    from lakehouse.scaffolding.new_files import write_files
    from lakehouse.scaffolding.table_text import source_of, table_text

    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a table; expected its layer and its name in lower case"
            " letters, digits and underscores, such as gold.daily_sales."
        )
    folder = folder_in(state, into)
    declared = state.computed_table(source)
    read = source_of(state.project.modules, declared)
    text = table_text(name, read, folder.package, folder.line_length)
    texts = folder.with_packages({folder.table_path(name): text})
    print_written(texts, write_files(texts))
    click.echo("Next:")
    click.echo(f"  lakehouse plan {name}")
    # `backfill` needs the days of a table by days; an ingest computes all missing ones.
    click.echo("  lakehouse ingest" if read.day else f"  lakehouse backfill {name}")


new.params.append(verbose_option())
for _command in (feed, table):
    new.add_command(_command)
