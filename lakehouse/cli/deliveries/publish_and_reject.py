"""`lakehouse publish`: publishes a blocked write against its rules."""

from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.options import by_option, why_kept_option
from lakehouse.cli.output.printing import count
from lakehouse.errors import UsageError
from lakehouse.tables.quoting import shown

if TYPE_CHECKING:
    from lakehouse.tables.feed import Feed


@command("publish")
@click.argument("name", metavar="TABLE")
@click.option(
    "--run",
    "run_id",
    required=True,
    metavar="ID",
    help="The blocked run: its id, or the start of it.",
)
@why_kept_option
@by_option
def publish(state: State, name: str, run_id: str, why: str, by: str) -> None:
    """Publish what a rule blocked, all the same.

    The user and the reason are recorded in the snapshot summary and in the materialization.
    """
    from lakehouse.ingestion.delivery_decisions import publish as overrule

    if not run_id.strip():
        raise UsageError(
            "--run is empty; expected the id of the run that was blocked, or how it begins."
        )

    table = state.computed_table(name)
    with state.progress(f"Publishing {table.name}"):
        published = overrule(state.settings, state.engine, table, run_id, by=by, why=why)
    if published.is_again:
        click.echo(
            f"{published.table}: run {published.run_id[:8]} was published against its rules"
            f" already, by {published.by}: {published.why}; what was left to do is done."
        )
        return
    click.echo(
        f"{published.table}: published against its rules as of run {published.run_id[:8]},"
        f" {count(published.rows, 'row')} in all. The next ingest computes what follows."
    )


@command("reject")
@click.argument("file")
@click.option("--feed", "feed_name", metavar="FEED", help="The feed that it was delivered to.")
@click.option(
    "--sha256",
    metavar="HASH",
    default="",
    help="Start of the hash, to select one of several deliveries.",
)
@why_kept_option
@by_option
def reject(
    state: State, file: str, feed_name: str | None, sha256: str, why: str, by: str
) -> None:
    """Delete a delivered file's rows from bronze again.

    FILE is its name in the inbox, as in `_source_file`; --sha256 selects one of several
    deliveries with the same name, which are listed. The file moves from the archive to the
    rejected files; if its feed leaves files in the inbox, remove it from there first. Its
    quarantined rows are removed, and the next ingest removes merged rows that only this file
    contained; older values of other deliveries are restored.
    """
    if feed_name is None and len(state.feeds) != 1:
        raise UsageError(
            f"Which feed? Expected --feed with one of {', '.join(sorted(state.feeds))}."
        )
    feed = state.feed(next(iter(state.feeds)) if feed_name is None else feed_name)
    _reject(state, feed, file, sha256, why=why, by=by)


def _reject(state: State, feed: "Feed", file: str, sha256: str, *, why: str, by: str) -> None:
    from lakehouse.ingestion.delivery_decisions import reject as reject_delivery
    from lakehouse.orchestration.runs.runs_for_stale_tables import Downstream

    following = Downstream(state.project.graph, feed.table).tables
    quarantines = []
    for name in following:
        quarantine = state.declared[name].quarantine if name in state.declared else None
        if quarantine:
            quarantines.append(quarantine.name)
    with state.progress(f"Rejecting {shown(file)}"):
        withdrawn = reject_delivery(
            state.settings, state.engine, feed, quarantines, file, by=by, why=why, sha256=sha256
        )
    for name in quarantines:
        if withdrawn.rows[name]:
            click.echo(
                f"{name}: {count(withdrawn.rows[name], 'row')} of {shown(file)} taken out."
            )
    where = "The file itself was not found in the archive."
    if withdrawn.key:
        where = f"The file is kept as {shown(withdrawn.key)}."
    taken_out = f"{count(withdrawn.rows[feed.table], 'row')} of {shown(file)} taken out."
    click.echo(f"{feed.table}: {taken_out} {where} The next ingest computes what follows.")
