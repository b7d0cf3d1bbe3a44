"""`lakehouse backfill`: a table's partitions computed in full."""

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.ingest_report import describe_tables
from lakehouse.cli.output.printing import conclude


@command("backfill")
@click.argument("name", metavar="TABLE")
@click.option(
    "--from", "first", required=True, metavar="KEY", help="First partition, such as 2026-03-01."
)
@click.option(
    "--to", "last", metavar="KEY", help="Last partition; the first where it is left out."
)
def backfill(state: State, name: str, first: str, last: str | None) -> None:
    """Compute partitions of a table anew, and what follows from them.

    They come out the same where nothing new arrived for them. Other partitions that are stale
    stay stale. A table with another partitions definition, and what follows from it, is
    computed by the sensor or the next ingest.
    """
    from lakehouse.definitions import definitions
    from lakehouse.orchestration.backfill import backfill as compute

    table = state.computed_table(name).name
    with state.progress(f"Computing {table}"):
        run = compute(definitions, state.settings, table, first, last or first)
    conclude(describe_tables(run.assets), run.messages, success=run.success)
