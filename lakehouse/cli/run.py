"""`lakehouse demo` and `lakehouse ingest`: delivered files through Dagster into the tables."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from lakehouse.cli.output import complain, table
from lakehouse.cli.records import ingest_record, print_records, text_or_json
from lakehouse.cli.report import complaints, rejected, summary
from lakehouse.cli.state import State, command
from lakehouse.cli.values import Column
from lakehouse.errors import UsageError
from lakehouse.iceberg.foreign import shell_word

if TYPE_CHECKING:
    from lakehouse.ingestion.catch_up import IngestResult

SUMMARY = "gold.bnpl_daily_summary"
_SHOWN = ("transaction_date", "currency", "transactions", "approved", "declined", "gross_amount", "approval_rate")
_NEXT = """
Try next:
  {program} sql "SELECT * FROM silver.fruits WHERE fruit LIKE 'B%' ORDER BY fruit"
  {program} sql "SELECT * FROM gold.customer_profiles ORDER BY transactions DESC LIMIT 5"
  {program} status
  {program} files silver.fruits
  {program} dev          the Dagster UI, with these runs, their checks and their numbers
  docs/tutorial.md{pad}Iceberg from the first table to its upkeep"""


@command("ingest")
@click.argument("names", metavar="[FEED]...", nargs=-1)
@click.option(
    "--path", metavar="PATH", help="Take these files instead: a file, a folder, an s3:// or https:// address."
)
@text_or_json
def ingest(state: State, names: tuple[str, ...], path: str | None, form: str) -> None:
    """Ingest the files that wait in an inbox.

    Of all feeds where none is named. Every table that follows from them is brought up to date. A file that is not what
    its feed declares is rejected (exit code 1) and the others go on. A row that a rule refuses is quarantined, and the
    rest goes on. Files that --path names stay where they are; a copy is archived.
    """
    feeds = [state.feed(name).name for name in names] or list(state.feeds)
    if path is not None and len(feeds) != 1:
        raise UsageError(
            f"--path is of one feed, and {len(feeds)} are meant; expected the name of one.",
            next_step=f"Say for example lakehouse ingest {feeds[0]} --path {shell_word(path)}",
        )
    results: list[IngestResult] = []
    try:
        for name in feeds:
            results.append(_ingest(state, name, path))
            _tell(results[-1], is_json=form == "json")
    finally:
        if form == "json":
            print_records(map(ingest_record, results))
    if not all(result.success for result in results):
        click.get_current_context().exit(1)


@command("demo")
def demo(state: State) -> None:
    """Run both pipelines on sample files.

    The shipped files of the feed fruits and two generated weeks of the feed bnpl are delivered to their inboxes and
    ingested; the daily summary of the last week is shown. Running it again changes nothing.
    """
    from lakehouse.cli.sample import PUT
    from lakehouse.resources.stores import open_store

    for name, put in PUT.items():
        feed = state.feed(name)
        with state.progress(f"Delivering sample files of {name}"):
            keys = put(state.settings, feed)
        inbox = open_store(state.settings).uri(feed.inbox)
        click.echo(f"{len(keys)} sample files delivered to {inbox.rstrip('/')}/")
        result = _ingest(state, name)
        _tell(result)
        if not result.success:
            click.get_current_context().exit(1)
    click.echo(_last_week(state))
    program = click.get_current_context().find_root().info_name or "lakehouse"
    click.echo(_NEXT.format(program=program, pad=" " * max(1, len(program) - 2)))


def _last_week(state: State) -> str:
    """Return the daily summary of the last seven days that it has, read without Spark."""
    from pyarrow import compute

    found = state.engine.catalog.load(SUMMARY).scan(selected_fields=_SHOWN).to_arrow()
    last = compute.max(found["transaction_date"]).as_py()
    week = found.filter(compute.field("transaction_date") > last - timedelta(days=7)).sort_by(
        [("transaction_date", "ascending"), ("currency", "ascending")]
    )
    rows = [[_readable(value) for value in row.values()] for row in week.to_pylist()]
    columns = [Column(name, is_number=name not in ("transaction_date", "currency")) for name in _SHOWN]
    return f"\n{SUMMARY}, the last seven days:\n{table(columns, rows)}"


def _readable(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.3f}"
    return value if value is None or isinstance(value, int) else str(value)


def _ingest(state: State, name: str, path: str | None = None) -> "IngestResult":
    """Ingest one feed; where that is interrupted, say which files were refused by then."""
    from lakehouse.definitions import TABLES, definitions
    from lakehouse.ingestion.catch_up import ingest as ingest_feed
    from lakehouse.ingestion.catch_up import refused_since

    feed, began_at = state.feeds[name], datetime.now(UTC)
    try:
        with state.progress(f"Ingesting {name}"):
            return ingest_feed(definitions, TABLES, state.settings, feed, path=path)
    except KeyboardInterrupt:
        # They are in the inbox no more: the next ingest would not name them.
        for line in rejected(refused_since(state.settings, feed, began_at)):
            complain(line)
        raise


def _tell(result: "IngestResult", *, is_json: bool = False) -> None:
    """Say what became of an ingest; what failed stands on standard error, also beside JSON."""
    for line in () if is_json else summary(result):
        click.echo(line)
    for line in complaints(result):
        complain(line)
