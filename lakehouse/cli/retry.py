"""`lakehouse retry`: a blocked or failed table computed again, and what follows from it."""

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.ingest_report import describe_tables
from lakehouse.cli.output.printing import conclude


@command("retry")
@click.argument("name", metavar="TABLE")
def retry(state: State, name: str) -> None:
    """Compute a table that is blocked or failed, and what follows.

    Such as after its rows or its function were corrected. It may be refused again.
    """
    from lakehouse.ingestion.feed_runs import retry as compute

    table = state.computed_table(name).name
    with state.progress(f"Computing {table}"):
        runs = compute(state.project.definitions, state.declared, state.settings, table)
    if not runs:
        click.echo(f"{table} is up to date: it is computed from what its inputs now hold.")
    conclude(
        describe_tables(asset for run in runs for asset in run.assets),
        (message for run in runs for message in run.messages),
        success=all(run.success for run in runs),
    )
