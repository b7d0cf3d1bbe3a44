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
        click.echo(_nothing_to_compute(state, table))
    conclude(
        describe_tables(asset for run in runs for asset in run.assets),
        (message for run in runs for message in run.messages),
        success=all(run.success for run in runs),
    )


def _nothing_to_compute(state: State, name: str) -> str:
    """Return the line for a table without stale partitions, with possible changes."""
    from lakehouse.iceberg.read.stale_tables import is_stale
    from lakehouse.iceberg.read.unfollowed_inputs import unfollowed
    from lakehouse.orchestration.asset_inputs import inputs_of
    from lakehouse.orchestration.asset_keys import asset_key

    inputs = inputs_of(state.project.graph.get(asset_key(name)).metadata)
    sources = unfollowed(state.declared[name], inputs)
    if not sources:
        return f"{name} is up to date: it is computed from what its inputs now hold."
    is_there = state.engine.catalog.has(name)
    changed = [
        source for source in sources if is_there and is_stale(state.engine, name, [source])
    ]
    since = f" {', '.join(changed)} changed since its last run." if changed else ""
    return (
        f"{name} has no stale partition.{since} What changes in {', '.join(sources)}, read without"
        " by=, makes none stale: partitions have what it held when they were computed."
        f" `lakehouse backfill {name} --from KEY --to KEY` computes them from what it now holds."
    )
