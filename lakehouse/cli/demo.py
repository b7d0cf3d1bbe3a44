"""`lakehouse demo`: runs both sample pipelines."""

from datetime import timedelta

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.ingest import ingest_one, report
from lakehouse.cli.output.cell_values import columns_named
from lakehouse.cli.output.printing import table
from lakehouse.errors import UsageError

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
    from lakehouse.cli.sample_files import PUT
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
