"""`lakehouse new`: declarations from existing files and tables."""

import keyword
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from lakehouse.cli.call_context import State, command, verbose_option
from lakehouse.cli.output.printing import count
from lakehouse.cli.output.progress import is_terminal
from lakehouse.cli.project.init import folder_in, into_option, print_written
from lakehouse.errors import UsageError
from lakehouse.tables.quoting import shell_word

if TYPE_CHECKING:
    from lakehouse.scaffolding.feed_plan import FeedPlan


_FEED_NAME = re.compile(r"[a-z][a-z0-9_]*")
_ZONE_HINT = "such as UTC or Europe/London"


@command("feed")
@click.argument(
    "paths",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option("--name", help="Name of the feed; default: the common prefix of the file names.")
@click.option(
    "--time-zone",
    metavar="ZONE",
    help="Time zone of its days and of timestamps without an offset, such as UTC or"
    " Europe/London.",
)
@into_option
def feed(
    state: State,
    paths: tuple[Path, ...],
    name: str | None,
    time_zone: str | None,
    into: Path | None,
) -> None:
    """Declare a feed from sample files of it.

    Inspects the files, and writes the feed with its bronze table, a typed silver table, a test and
    a small sample with replaced personal values. Guesses are marked by comments for your
    confirmation; unclear columns stay text and are listed. Supported: CSV in UTF-8 with commas,
    semicolons, tabs or bars and a header row; JSON, Parquet and Avro with their types.
    """
    from lakehouse.scaffolding.begin_project import write_files
    from lakehouse.scaffolding.feed_plan import plan_feed
    from lakehouse.scaffolding.feed_text import feed_files
    from lakehouse.scaffolding.samples import read_samples

    folder = folder_in(state, into)
    feed_name = _feed_name(name, paths)
    zone = _zone(time_zone)
    with state.progress(f"Reading {count(len(paths), 'file')}"):
        plan = plan_feed(read_samples(paths), feed_name, zone, datetime.now(UTC).date())
    if folder.is_of_project and not folder.table_path(plan.bronze).exists():
        _check_is_new(state, plan)
    texts = feed_files(plan, folder)
    print_written(texts, write_files(texts))
    _print_guesses(plan)
    _print_next_steps(plan, paths)


def _feed_name(name: str | None, paths: Sequence[Path]) -> str:
    """Return the given name, or the common prefix of the file names without dates and numbers."""
    prefixes = {_begin(path.name) for path in paths}
    if name is None and len(prefixes) == 1:
        (name,) = prefixes
    if name is None or not _FEED_NAME.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(
            f"The name of the feed is {name!r}; expected lower case letters, digits and"
            " underscores, from a letter on, and no word of Python.",
            next_step="Say --name, such as orders.",
        )
    return name


def _begin(file_name: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "_", file_name.split(".")[0].lower())
    return re.sub(r"[_0-9]+$", "", words).strip("_")


def _zone(time_zone: str | None) -> str:
    """Return the time zone; prompts for it on a terminal.

    :raises UsageError: it is missing without a terminal, or unknown.
    """
    if time_zone is None:
        if not is_terminal(sys.stdin):
            raise UsageError(
                "--time-zone is not given; expected the zone in which the days of the files begin,"
                f" {_ZONE_HINT}.",
                next_step="Say --time-zone UTC where moments are in UTC or have an offset.",
            )
        time_zone = click.prompt(f"Time zone of the files, {_ZONE_HINT}", err=True)
    try:
        return ZoneInfo(time_zone).key
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(
            f"--time-zone is {time_zone!r}; expected a name {_ZONE_HINT}."
        ) from error


def _check_is_new(state: State, plan: "FeedPlan") -> None:
    """Raise if a feed or table with this name is already declared."""
    taken = [f"a feed {plan.name}"] if plan.name in state.feeds else []
    taken += [name for name in (plan.bronze, plan.silver) if name in state.declared]
    if taken:
        raise UsageError(
            f"There is {' and '.join(taken)} already; nothing was written.",
            next_step="Give another --name.",
        )


def _print_guesses(plan: "FeedPlan") -> None:
    from lakehouse.scaffolding.feed_notes import bronze_notes, silver_notes, unclear_notes

    click.echo(f"Guessed from {plan.source}; please confirm:")
    for note in (*bronze_notes(plan), *silver_notes(plan)):
        click.echo(f"  {note}")
    for note in unclear_notes(plan):
        click.echo(f"  stays text: {note}")


def _print_next_steps(plan: "FeedPlan", paths: Sequence[Path]) -> None:
    click.echo(
        "Look through the sample before you share it: text is in it as it was delivered."
    )
    click.echo("Next:")
    click.echo(f"  lakehouse plan {plan.bronze} {plan.silver}")
    folders = sorted({path.parent for path in paths})
    has_others = any(path not in paths for folder in folders for path in folder.iterdir())
    for path in paths if has_others or len(paths) == 1 else folders:
        click.echo(f"  lakehouse ingest {plan.name} --path {shell_word(str(path))}")
    gold = f"gold.{plan.name}_{'daily' if plan.days else 'report'}"
    click.echo(f"  lakehouse new table {gold} --from {plan.silver}")


@click.group("new")
def new() -> None:
    """Begin a feed from its files, or a table from another one.

    Writes plain Python files to read, correct and keep; existing files are not overwritten.
    """


_TABLE_NAME = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*")


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
    from lakehouse.scaffolding.begin_project import write_files
    from lakehouse.scaffolding.table_text import source_of, table_text

    if not _TABLE_NAME.fullmatch(name) or any(map(keyword.iskeyword, name.split("."))):
        raise UsageError(
            f"{name!r} is no name for a table; expected its layer and its name in lower case"
            " letters, digits and underscores, such as gold.daily_sales, and no word of Python."
        )
    folder = folder_in(state, into)
    declared = state.computed_table(source)
    read = source_of(state.project.modules, declared)
    texts = folder.completed({folder.table_path(name): table_text(name, read)})
    print_written(texts, write_files(texts))
    click.echo("Next:")
    click.echo(f"  lakehouse plan {name}")
    # `backfill` needs the days of a table by days; an ingest computes all missing ones.
    click.echo("  lakehouse ingest" if read.day else f"  lakehouse backfill {name}")


new.params.append(verbose_option())
for _command in (feed, table):
    new.add_command(_command)
