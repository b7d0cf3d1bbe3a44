"""`lakehouse retry`, `publish` and `reject`: the ways out for a person where a rule holds a table back."""

import click

from lakehouse.cli.decided import by_option, why_option
from lakehouse.cli.output import conclude, count
from lakehouse.cli.report import tables
from lakehouse.cli.state import State, command
from lakehouse.errors import UsageError

_WHY = why_option("Why; it is kept with the table.")


@command("retry")
@click.argument("name", metavar="TABLE")
def retry(state: State, name: str) -> None:
    """Compute a table that was held back, and what follows from it.

    Such as after its rows were corrected. It may be refused again.
    """
    from lakehouse.definitions import TABLES, definitions
    from lakehouse.ingestion.catch_up import retry as compute

    table = state.declared_table(name).name
    with state.progress(f"Computing {table}"):
        runs = compute(definitions, TABLES, state.settings, table)
    if not runs:
        click.echo(f"{table} owes nothing: it is computed from what its inputs now hold.")
    conclude(
        tables(asset for run in runs for asset in run.assets),
        (message for run in runs for message in run.messages),
        success=all(run.success for run in runs),
    )


@command("publish")
@click.argument("name", metavar="TABLE")
@click.option("--run", "run_id", required=True, metavar="ID", help="The run that was refused, or how its id begins.")
@_WHY
@by_option
def publish(state: State, name: str, run_id: str, why: str, by: str) -> None:
    """Publish what a rule refused, all the same.

    Who and why stand in the snapshot's summary, and beside the materialization in Dagster.
    """
    from lakehouse.ingestion.overruling import publish as overrule

    table = state.declared_table(name)
    with state.progress(f"Publishing {table.name}"):
        done = overrule(state.settings, state.engine, table, run_id, by=by, why=why)
    click.echo(
        f"{done.table}: published against its rules as of run {done.run_id[:8]}, {count(done.rows, 'row')} in all. "
        "The next ingest computes what follows."
    )


@command("reject")
@click.argument("file")
@click.option("--feed", "feed_name", metavar="FEED", help="The feed that it was delivered to.")
@_WHY
@by_option
def reject(state: State, file: str, feed_name: str | None, why: str, by: str) -> None:
    """Take a delivered file's rows out of bronze again.

    FILE is its name in the inbox, as `_source_file` has it; it is put with the rejected ones. Rows of it that were
    refused leave the quarantines too. A table that merges keeps what it had already merged of it.
    """
    from lakehouse.definitions import definitions
    from lakehouse.ingestion.overruling import reject as take_out
    from lakehouse.resources.owed_runs import Downstream

    if feed_name is None and len(state.feeds) != 1:
        raise UsageError(f"Which feed? Expected --feed with one of {', '.join(sorted(state.feeds))}.")
    feed = state.feed(feed_name or next(iter(state.feeds)))
    following = Downstream(definitions().resolve_asset_graph(), feed.table).tables
    found = (state.declared[name].quarantine for name in following if name in state.declared)
    quarantines = [table.name for table in found if table]
    with state.progress(f"Rejecting {file}"):
        done = take_out(state.settings, state.engine, feed, quarantines, file, by=by, why=why)
    for name in quarantines:
        if done.rows[name]:
            click.echo(f"{name}: {count(done.rows[name], 'row')} of {file} taken out.")
    click.echo(
        f"{feed.table}: {count(done.rows[feed.table], 'row')} of {file} taken out. "
        f"{f'The file is kept as {done.key}' if done.key else 'The file itself was not found in the archive'}. "
        "The next ingest computes what follows."
    )
