"""`lakehouse quarantine clear`: deletes quarantined rows."""

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.printing import count, printable
from lakehouse.cli.quarantined_tables import table_with_quarantine
from lakehouse.cli.why_and_by_options import by_option, why_kept_option


@command("clear")
@click.argument("name", metavar="TABLE")
@click.option("--rule", metavar="NAME", help="Only rows that break this rule.")
@click.option("--file", metavar="FILE", help="Only rows of this delivered file.")
@why_kept_option
@by_option
def clear(
    state: State, name: str, rule: str | None, file: str | None, why: str, by: str
) -> None:
    """Delete the refused rows of a table from its quarantine.

    A table next to the quarantine records the deleted rows without their values, with time,
    user and reason, so that all rows are accounted for. If they are rejected again, they do not
    return; if they pass after a correction, they are inserted into the table.
    """
    from lakehouse.iceberg.write.clear_quarantine import clear_quarantine

    owner = table_with_quarantine(state, name)
    with state.progress(f"Clearing the quarantine of {owner.name}"):
        rows = clear_quarantine(state.engine, owner, by=by, why=why, rule=rule, file=file)
    if rows:
        click.echo(printable(f"{owner.name}: {count(rows, 'refused row')} cleared by {by}."))
    else:
        click.echo(f"{owner.name}: no such row is in quarantine.")
