"""`lakehouse demo` and `lakehouse ingest`: delivered files through Dagster into the tables."""

import click

from lakehouse.cli.output import complain
from lakehouse.cli.report import complaints, summary
from lakehouse.cli.state import State, command

DEMO_FEED = "fruits"
_NEXT = """
Try next:
  {program} sql "SELECT * FROM silver.fruits WHERE fruit LIKE 'B%' ORDER BY fruit"
  {program} status
  {program} files silver.fruits
  {program} dev          the Dagster UI, with this run, its checks and its numbers
  docs/tutorial.md{pad}Iceberg from the first table to its upkeep"""


@command("ingest")
@click.argument("names", metavar="[FEED]...", nargs=-1)
def ingest(state: State, names: tuple[str, ...]) -> None:
    """Ingest the files that wait in an inbox.

    Of all feeds where none is named. Every table that follows from them is brought up to date. A file that is not what
    its feed declares is rejected (exit code 1) and the others go on. A row that a rule refuses is quarantined, and the
    rest goes on.
    """
    feeds = [state.feed(name).name for name in names] or list(state.feeds)
    succeeded = [_ingest(state, name) for name in feeds]
    if not all(succeeded):
        click.get_current_context().exit(1)


@command("demo")
def demo(state: State) -> None:
    """Ingest the sample files.

    They are delivered to the inbox of the feed fruits. Running it again changes nothing.
    """
    from lakehouse.cli.sample import put_samples

    feed = state.feed(DEMO_FEED)
    put = put_samples(state.settings, feed)
    click.echo(f"{len(put)} sample files delivered to {state.settings.home / feed.inbox}/")
    if not _ingest(state, feed.name):
        click.get_current_context().exit(1)
    program = click.get_current_context().find_root().info_name or "lakehouse"
    click.echo(_NEXT.format(program=program, pad=" " * max(1, len(program) - 2)))


def _ingest(state: State, name: str) -> bool:
    """Ingest one feed, and say what became of it; whether all of it went through."""
    from lakehouse.definitions import TABLES, definitions
    from lakehouse.ingestion.catch_up import ingest as ingest_feed

    with state.progress(f"Ingesting {name}"):
        result = ingest_feed(definitions, TABLES, state.settings, state.feeds[name])
    for line in summary(result):
        click.echo(line)
    for line in complaints(result):
        complain(line)
    return result.success
