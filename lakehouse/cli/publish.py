"""`lakehouse publish`: publishes a blocked write against its rules."""

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.printing import count
from lakehouse.cli.why_and_by_options import by_option, why_kept_option
from lakehouse.errors import UsageError


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
    from lakehouse.ingestion.forced_publish import publish as overrule

    if not run_id.strip():
        raise UsageError(
            "--run is empty; expected the id of the run that was refused, or how it begins."
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
