"""`lakehouse backfill`: recomputes a table or partitions of it."""

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.ingest_report import conclude_runs
from lakehouse.errors import UsageError


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
    lines = []
    if not runs:
        function = state.functions.get(table)
        keys = " --from KEY --to KEY" if function and function.partitions_def else ""
        lines.append(
            f"{table}: nothing to compute. `lakehouse backfill {table}{keys}` computes it from"
            " all current rows of its inputs."
        )
    conclude_runs(runs, *lines)


@command("backfill")
@click.argument("name", metavar="TABLE")
@click.option(
    "--from",
    "first",
    metavar="KEY",
    help="First partition, such as 2026-03-01; omit it for an unpartitioned table.",
)
@click.option("--to", "last", metavar="KEY", help="Last partition; default: the first.")
@click.option(
    "--stale",
    is_flag=True,
    help="Compute only rows of older code than the current one.",
)
def backfill(state: State, name: str, first: str | None, last: str | None, stale: bool) -> None:
    """Compute a table, or partitions, in full, and what follows.

    For a partitioned table, --from and --to select the partitions; other stale partitions stay
    stale. Without new input, the result is the same. Downstream tables with different
    partitions are computed by the sensor or the next ingest.

    A table that is merged or appended to keeps rows that its sources no longer have.

    With --stale, only rows of older code are recomputed: `lakehouse status` shows them. Rows of
    unknown code, such as those of other tools, are not.
    """
    from lakehouse.orchestration.runs.backfill_runs import backfill as compute

    table = state.computed_table(name).name
    if stale:
        if first or last:
            raise UsageError("--stale finds the partitions itself; expected no --from or --to.")
        _backfill_older(state, table)
        return
    with state.progress(f"Computing {table}"):
        run = compute(state.project.definitions, state.settings, table, first, last)
    conclude_runs([run])


def _backfill_older(state: State, name: str) -> None:
    from lakehouse.orchestration.runs.older_code import backfill_older

    table = state.declared[name]
    with state.progress(f"Computing what of {name} is of older code"):
        runs = backfill_older(state.project.definitions, state.settings, state.engine, table)
    nothing = f"{name}: nothing in it is known to be of older code"
    conclude_runs(runs, *([] if runs else [nothing]))
