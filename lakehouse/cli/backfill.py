"""`lakehouse backfill`: a table, or partitions of it, computed in full."""

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.ingest_report import describe_tables
from lakehouse.cli.output.printing import conclude


@command("backfill")
@click.argument("name", metavar="TABLE")
@click.option(
    "--from",
    "first",
    metavar="KEY",
    help="First partition, such as 2026-03-01; of a table without partitions none.",
)
@click.option(
    "--to", "last", metavar="KEY", help="Last partition; the first where it is left out."
)
def backfill(state: State, name: str, first: str | None, last: str | None) -> None:
    """Compute a table, or partitions, in full, and what follows.

    Of a table with partitions, those from --from to --to are computed; others that are stale
    stay stale. What is computed comes out the same where nothing new arrived. A table with
    another partitions definition, and what follows from it, is computed by the sensor or the
    next ingest.

    A table that is merged or appended to keeps the rows that its sources have no more.
    """
    from lakehouse.orchestration.backfill import backfill as compute

    table = state.computed_table(name).name
    with state.progress(f"Computing {table}"):
        run = compute(state.project.definitions, state.settings, table, first, last)
    conclude(describe_tables(run.assets), run.messages, success=run.success)
