"""`lakehouse demo`: runs both sample pipelines."""

import tempfile
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from importlib.resources import as_file, files
from pathlib import Path

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.deliveries.ingest import ingest_one, report
from lakehouse.cli.output.cell_values import columns_named
from lakehouse.cli.output.printing import count, table
from lakehouse.errors import UsageError
from lakehouse.settings import Settings
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed

SUMMARY = "gold.bnpl_daily_summary"


_NUMBERS = ("transactions", "approved", "declined", "gross_amount", "approval_rate")
_SHOWN = ("transaction_date", "currency", *_NUMBERS)


_NEXT = """
Try next:
  {program} sql "SELECT * FROM silver.fruits WHERE fruit LIKE 'B%' ORDER BY fruit"
  {program} sql "SELECT * FROM gold.customer_profiles ORDER BY transactions DESC LIMIT 5"
  {program} status
  {program} files silver.fruits
  {program} dev          the Dagster UI, with these runs, their checks and their numbers
  docs/tutorial.md{pad}Iceberg from the first table to its upkeep"""


@command("demo")
def demo(state: State) -> None:
    """Run both pipelines on sample files.

    Delivers the sample files of the feed fruits and two generated weeks of the feed bnpl,
    ingests them, and shows the daily summary of the last week. A second run changes nothing.
    """
    from lakehouse.storage.stores import open_store

    if PUT.keys() - state.feeds.keys():
        raise UsageError(
            "`lakehouse demo` is of the sample pipelines, which this project does not have;"
            " expected a folder that lies in no project.",
            next_step="Run it in another folder.",
        )
    for name, put in PUT.items():
        feed = state.feed(name)
        with state.progress(f"Delivering sample files of {name}"):
            keys = put(state.settings, feed)
        inbox = open_store(state.settings).uri(feed.inbox)
        click.echo(f"{len(keys)} sample files delivered to {inbox.rstrip('/')}/")
        result = ingest_one(state, name)
        report(result)
        if not result.success:
            click.get_current_context().exit(1)
    click.echo(_last_week(state))
    program = click.get_current_context().find_root().info_name or "lakehouse"
    click.echo(_NEXT.format(program=program, pad=" " * max(1, len(program) - 2)))


def _last_week(state: State) -> str:
    """Return the last seven days of the daily summary, read without Spark."""
    from pyarrow import compute

    summary = state.engine.catalog.load(SUMMARY).scan(selected_fields=_SHOWN).to_arrow()
    last = compute.max(summary["transaction_date"]).as_py()
    week = summary.filter(compute.field("transaction_date") > last - timedelta(days=7)).sort_by(
        [("transaction_date", "ascending"), ("currency", "ascending")]
    )
    rows = [list(map(_readable, row.values())) for row in week.to_pylist()]
    columns = columns_named(_SHOWN, _NUMBERS)
    return f"\n{SUMMARY}, the last seven days:\n{table(columns, rows)}"


def _readable(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.3f}"
    return value if value is None or isinstance(value, int) else str(value)


FIRST_DAY = date(2026, 3, 2)
DAYS = 14


def put_samples(settings: Settings, feed: Feed) -> list[str]:
    """Put the sample files of a feed into its inbox, unless they wait there; return their keys."""
    with as_file(files("lakehouse.sample_data") / feed.name) as folder:
        return _put(settings, feed, sorted(folder.glob("*.csv")))


def put_generated(settings: Settings, feed: Feed) -> list[str]:
    """Generate two weeks of transactions, always the same, as one file per day in the inbox."""
    from lakehouse.sample_data.bnpl.generator import generate

    with tempfile.TemporaryDirectory(prefix="bnpl-") as folder:
        generated = generate(Path(folder), FIRST_DAY, days=DAYS, rows_per_day=500, seed=1)
        return _put(settings, feed, generated.files)


PUT: dict[str, Callable[[Settings, Feed], list[str]]] = {
    "fruits": put_samples,
    "bnpl": put_generated,
}
"""Deliveries of the demo by feed."""


def _put(settings: Settings, feed: Feed, paths: Sequence[Path]) -> list[str]:
    store = open_store(settings)
    keys = {f"{feed.inbox}{path.name}": path for path in paths}
    for key, path in keys.items():
        if not store.exists(key):
            store.put(path, key)
    return list(keys)


@command("generate")
@click.argument("_what", metavar="bnpl", type=click.Choice(["bnpl"]))
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder to write to; created if missing.",
)
@click.option(
    "--start",
    required=True,
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="First day.",
)
@click.option("--days", default=30, show_default=True, help="Number of days, one file each.")
@click.option(
    "--rows-per-day", default=1000, show_default=True, help="Rows of a file, on average."
)
@click.option("--seed", default=1, show_default=True, help="Another seed makes other rows.")
@click.option("--gzip", is_flag=True, help="Write .csv.gz.")
def generate(
    state: State,
    _what: str,
    out: Path,
    start: datetime,
    days: int,
    rows_per_day: int,
    seed: int,
    gzip: bool,
) -> None:
    """Write files of transactions.

    Writes one CSV file per day with known defects, and truth.json with the expected contents of
    the tables. Files depend only on the arguments, and are overwritten by the same
    arguments; folders with other files are rejected.
    """
    from lakehouse.sample_data.bnpl.arguments import BadArguments
    from lakehouse.sample_data.bnpl.generator import FolderTaken
    from lakehouse.sample_data.bnpl.generator import generate as write_files

    try:
        with state.progress("Generating transactions"):
            generated = write_files(out, start.date(), days, rows_per_day, seed, gzip=gzip)
    except (BadArguments, FolderTaken) as error:
        raise UsageError(str(error)) from error
    totals = generated.truth.totals
    click.echo(
        f"{count(len(generated.files), 'file')} with {count(totals['bronze'], 'row')} in {out}/"
    )
    fates = ", ".join(
        f"{totals[fate]:,} {fate}" for fate in ("clean", "superseded", "quarantined")
    )
    click.echo(
        f"{generated.truth_file}: {fates}, {count(generated.truth.customers, 'customer')}"
    )
