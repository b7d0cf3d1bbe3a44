"""`lakehouse reject`: a delivered file's rows out of bronze again, and what was computed from
them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.cell_values import Column, utc_text
from lakehouse.cli.output.printing import count, render
from lakehouse.cli.why_and_by_options import by_option, why_kept_option
from lakehouse.errors import UsageError
from lakehouse.tables.escaping import shown

if TYPE_CHECKING:
    from lakehouse.ingestion.withdraw_delivery import Came
    from lakehouse.tables.feed import Feed


@command("reject")
@click.argument("file")
@click.option("--feed", "feed_name", metavar="FEED", help="The feed that it was delivered to.")
@click.option(
    "--sha256",
    metavar="HASH",
    default="",
    help="Which delivery of that name: how its hash begins.",
)
@why_kept_option
@by_option
def reject(
    state: State, file: str, feed_name: str | None, sha256: str, why: str, by: str
) -> None:
    """Delete a delivered file's rows from bronze again.

    FILE is its name in the inbox, as `_source_file` has it; where several deliveries had that
    name they are listed, and --sha256 says which. It is put with the rejected ones from the
    archive; one that its feed leaves in the inbox stays there, and lands no row until it is
    delivered anew. Rows of it that were refused leave the quarantines too, and with the next
    ingest those that were merged of it alone; where another delivery gives them, its values come
    back.
    """
    from lakehouse.ingestion.withdraw_delivery import SeveralDeliveries

    if feed_name is None and len(state.feeds) != 1:
        raise UsageError(
            f"Which feed? Expected --feed with one of {', '.join(sorted(state.feeds))}."
        )
    feed = state.feed(next(iter(state.feeds)) if feed_name is None else feed_name)
    try:
        _reject(state, feed, file, sha256, why=why, by=by)
    except SeveralDeliveries as error:
        click.echo(_listed(error.deliveries))
        raise


def _reject(state: State, feed: "Feed", file: str, sha256: str, *, why: str, by: str) -> None:
    from lakehouse.ingestion.withdraw_delivery import reject as reject_delivery
    from lakehouse.orchestration.runs_for_stale_tables import Downstream

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
    elif withdrawn.stays_in_inbox:
        where = f"The file stays in {feed.inbox}, and lands no row until it is delivered anew."
    taken_out = f"{count(withdrawn.rows[feed.table], 'row')} of {shown(file)} taken out."
    click.echo(f"{feed.table}: {taken_out} {where} The next ingest computes what follows.")


def _listed(deliveries: "Sequence[Came]") -> str:
    columns = [Column("ingested_at"), Column("rows", is_number=True), Column("sha256")]
    rows = [(utc_text(came.at), came.rows, came.short_sha256) for came in deliveries]
    return render("table", columns, rows)
