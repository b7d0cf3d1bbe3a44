"""`lakehouse backfill`: a table, or partitions of it, computed in full."""

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.ingest_report import describe_tables
from lakehouse.cli.output.printing import conclude
from lakehouse.errors import UsageError


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
@click.option(
    "--stale",
    is_flag=True,
    help="Compute what was computed by older code than the table has now, and no more.",
)
def backfill(state: State, name: str, first: str | None, last: str | None, stale: bool) -> None:
    """Compute a table, or partitions, in full, and what follows.

    Of a table with partitions, those from --from to --to are computed; others that are stale
    stay stale. What is computed comes out the same where nothing new arrived. A table with
    another partitions definition, and what follows from it, is computed by the sensor or the
    next ingest.

    A table that is merged or appended to keeps the rows that its sources have no more.

    With --stale, that is computed of which older code made the rows: `lakehouse status` shows
    it. Rows of which the code is not known, such as those that another tool wrote, stay.
    """
    from lakehouse.orchestration.backfill import backfill as compute

    table = state.computed_table(name).name
    if stale:
        if first or last:
            raise UsageError("--stale finds the partitions itself; expected no --from or --to.")
        _backfill_older(state, table)
        return
    with state.progress(f"Computing {table}"):
        run = compute(state.project.definitions, state.settings, table, first, last)
    conclude(describe_tables(run.assets), run.messages, success=run.success)


def _backfill_older(state: State, name: str) -> None:
    from lakehouse.orchestration.older_code import backfill_older

    table = state.declared[name]
    with state.progress(f"Computing what of {name} is of older code"):
        runs = backfill_older(state.project.definitions, state.settings, state.engine, table)
    described: list[str] = []
    messages: list[str] = []
    for run in runs:
        described += describe_tables(run.assets)
        messages += run.messages
    if not runs:
        described.append(f"{name}: nothing in it is known to be of older code")
    conclude(described, messages, success=all(run.success for run in runs))
