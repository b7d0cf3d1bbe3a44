"""`lakehouse export`: exports all rows of a data subject; no JVM."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.options import parse_people
from lakehouse.cli.output.printing import complain, count
from lakehouse.cli.output.record_output import records_text

if TYPE_CHECKING:
    from lakehouse.privacy.personal_export import Export


@command("export")
@click.argument("people", metavar="SUBJECT=VALUE...", nargs=-1, required=True)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it to this file, which only you can read.",
)
def export(state: State, people: tuple[str, ...], output: Path | None) -> None:
    """Print all rows that tables have of a person.

    The output is JSON: published rows with their table. Name a person by the subject column
    (customer_id=123) or by an identifying column (customer_email=a@b.c). A value of - reads
    values from standard input, one per line; a single - reads lines of SUBJECT=VALUE. The searched
    tables are listed on standard error. Delivered files that are in no table, such as
    rejected ones, are not searched.
    """
    from lakehouse.privacy.identity import find_people
    from lakehouse.privacy.personal_export import export_people

    named = parse_people(people)
    with state.progress("Looking into the tables"):
        kinds = state.project.subjects
        identities = find_people(state.engine, kinds, named)
        exported = export_people(state.engine, kinds, identities, state.declared)
    _print(exported, output)
    for identity in identities:
        if not identity.is_known:
            complain(f"No table has the {identity.person.subject} that was given.")
    _print_searched(exported)


def _print(exported: "Export", output: Path | None) -> None:
    from lakehouse.storage.atomic_files import replace_text

    text = records_text(
        {"table": exported_row.table, "row": exported_row.row} for exported_row in exported.rows
    )
    if output is None:
        click.echo(text)
    else:
        replace_text(output, f"{text}\n")


def _print_searched(exported: "Export") -> None:
    complain(
        f"{count(len(exported.rows), 'row')}; looked at"
        f" {count(len(exported.tables), 'table')}: {', '.join(exported.tables) or 'none'}."
    )
    if exported.shared_rows:
        complain(
            f"{count(exported.shared_rows, 'row')} left out: their only match is a value that"
            " somebody else has too."
        )
    for table, columns in exported.unsearched.items():
        complain(
            f"{table} is not declared, and was not searched, though it has"
            f" {', '.join(columns)}."
        )
    for table, why in exported.unsupported.items():
        complain(f"{table} was not searched: {why}")
