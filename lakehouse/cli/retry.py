"""`lakehouse retry`: recomputes a blocked or failed table and its downstream tables."""

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.ingest_report import describe_tables
from lakehouse.cli.output.printing import conclude


@command("retry")
@click.argument("name", metavar="TABLE")
def retry(state: State, name: str) -> None:
    """Compute a table that is blocked or failed, and what follows.

    Use it after a correction of its rows or its function. It can be blocked again.

    For a partitioned table, its stale partitions are computed; a change of an input without
    by= makes no partition stale.
    """
    from lakehouse.ingestion.feed_runs import retry as compute

    table = state.computed_table(name).name
    with state.progress(f"Computing {table}"):
        runs = compute(state.project.definitions, state.declared, state.settings, table)
    if not runs:
        click.echo(
            f"{table}: nothing to compute. `lakehouse backfill {table}` computes it from all"
            " current rows of its inputs."
        )
    conclude(
        describe_tables(asset for run in runs for asset in run.assets),
        (message for run in runs for message in run.messages),
        success=all(run.success for run in runs),
    )
