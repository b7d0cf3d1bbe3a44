"""`lakehouse retry`, `publish` and `reject`: the ways out for a person where a rule holds a table back."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from lakehouse.cli.decided import by_option, why_option
from lakehouse.cli.output import conclude, count, render
from lakehouse.cli.report import tables
from lakehouse.cli.state import State, command
from lakehouse.cli.values import Column, utc_text
from lakehouse.errors import UsageError
from lakehouse.iceberg.foreign import shown

if TYPE_CHECKING:
    from lakehouse.ingestion.feed import Feed
    from lakehouse.ingestion.rejecting import Came

_WHY = why_option("Why; it is kept with the table.")


@command("retry")
@click.argument("name", metavar="TABLE")
def retry(state: State, name: str) -> None:
    """Compute a table that was held back or failed, and what follows.

    Such as after its rows or its function were corrected. It may be refused again.
    """
    from lakehouse.definitions import TABLES, definitions
    from lakehouse.ingestion.catch_up import retry as compute

    table = state.computed_table(name).name
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

    if not run_id.strip():
        raise UsageError("--run is empty; expected the id of the run that was refused, or how it begins.")

    table = state.computed_table(name)
    with state.progress(f"Publishing {table.name}"):
        done = overrule(state.settings, state.engine, table, run_id, by=by, why=why)
    click.echo(
        f"{done.table}: published against its rules as of run {done.run_id[:8]}, {count(done.rows, 'row')} in all. "
        "The next ingest computes what follows."
    )


@command("reject")
@click.argument("file")
@click.option("--feed", "feed_name", metavar="FEED", help="The feed that it was delivered to.")
@click.option("--sha256", metavar="HASH", default="", help="Which delivery of that name: how its hash begins.")
@_WHY
@by_option
def reject(state: State, file: str, feed_name: str | None, sha256: str, why: str, by: str) -> None:
    """Take a delivered file's rows out of bronze again.

    FILE is its name in the inbox, as `_source_file` has it; where several deliveries had that name they are listed, and
    --sha256 says which. It is put with the rejected ones. Rows of it that were refused leave the quarantines too, and
    with the next ingest those that were merged of it alone; where another delivery gives them, its values come back.
    """
    from lakehouse.ingestion.rejecting import SeveralDeliveries

    if feed_name is None and len(state.feeds) != 1:
        raise UsageError(f"Which feed? Expected --feed with one of {', '.join(sorted(state.feeds))}.")
    feed = state.feed(next(iter(state.feeds)) if feed_name is None else feed_name)
    try:
        _reject(state, feed, file, sha256, why=why, by=by)
    except SeveralDeliveries as error:
        click.echo(_listed(error.deliveries))
        raise


def _reject(state: State, feed: "Feed", file: str, sha256: str, *, why: str, by: str) -> None:
    from lakehouse.definitions import definitions
    from lakehouse.ingestion.rejecting import reject as take_out
    from lakehouse.resources.owed_runs import Downstream

    following = Downstream(definitions().resolve_asset_graph(), feed.table).tables
    found = (state.declared[name].quarantine for name in following if name in state.declared)
    quarantines = [table.name for table in found if table]
    with state.progress(f"Rejecting {shown(file)}"):
        done = take_out(state.settings, state.engine, feed, quarantines, file, by=by, why=why, sha256=sha256)
    for name in quarantines:
        if done.rows[name]:
            click.echo(f"{name}: {count(done.rows[name], 'row')} of {shown(file)} taken out.")
    click.echo(
        f"{feed.table}: {count(done.rows[feed.table], 'row')} of {shown(file)} taken out. "
        f"{f'The file is kept as {shown(done.key)}' if done.key else 'The file itself was not found in the archive'}. "
        "The next ingest computes what follows."
    )


def _listed(deliveries: "Sequence[Came]") -> str:
    columns = [Column("ingested_at"), Column("rows", is_number=True), Column("sha256")]
    rows = [(utc_text(one.at), one.rows, one.short_sha256) for one in deliveries]
    return render("table", columns, rows)
