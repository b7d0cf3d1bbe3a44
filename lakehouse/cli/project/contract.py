"""`lakehouse contract`: data contracts of tables for other tools."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.options import declared_tables
from lakehouse.cli.output.printing import count
from lakehouse.storage.atomic_files import replace_text

if TYPE_CHECKING:
    from lakehouse.tables.table import IcebergTable

_READABLE = 0o644
"""Contracts are readable by all users."""


@command("contract")
@click.argument("names", metavar="[TABLE]...", nargs=-1)
@click.option(
    "--format",
    "form",
    type=click.Choice(["odcs"]),
    default="odcs",
    show_default=True,
    help="The Open Data Contract Standard, version 3.2.",
)
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write a file for each table into a folder, and print nothing else.",
)
def contract(state: State, names: tuple[str, ...], form: str, folder: Path | None) -> None:  # noqa: ARG001
    """Show tables as data contracts.

    Contains columns, rules, personal data, freshness, owner and location of the named tables, or
    of all declared tables except quarantines. Several contracts are one YAML stream. The output
    depends only on the declaration and the deployment.
    """
    contracts = _contracts(state, names)
    if folder is None:
        click.echo("---\n".join(contracts.values()), nl=False)
        return
    for name, text in contracts.items():
        replace_text(folder / f"{name}.odcs.yaml", text, mode=_READABLE)
    click.echo(f"{count(len(contracts), 'contract')} in {folder}")


def _contracts(state: State, names: tuple[str, ...]) -> Mapping[str, str]:
    from lakehouse.contracts.odcs import contract_text

    tables = declared_tables(state, names or _without_quarantines(state.declared))
    return {table.name: contract_text(table, state.settings, state.feeds) for table in tables}


def _without_quarantines(declared: "Mapping[str, IcebergTable]") -> tuple[str, ...]:
    """Return the names of the tables that are not quarantines."""
    quarantines = {table.quarantine.name for table in declared.values() if table.quarantine}
    return tuple(sorted(declared.keys() - quarantines))
