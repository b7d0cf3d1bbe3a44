"""`lakehouse apply`: changes tables to match their declarations."""

from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.named_tables import declared_tables
from lakehouse.cli.output.printing import complain
from lakehouse.errors import LakehouseError

if TYPE_CHECKING:
    from lakehouse.iceberg.evolve.planning import Plan
    from lakehouse.tables.table import IcebergTable


@command("apply")
@click.argument("names", metavar="[TABLE]...", nargs=-1)
def apply(state: State, names: tuple[str, ...]) -> None:
    """Bring tables to their declarations.

    Without names: all tables. A table is not changed if the change would lose data or break
    readers; the remaining tables are.
    """
    applied = [_apply(state, table) for table in declared_tables(state, names)]
    if not all(applied):
        click.get_current_context().exit(1)


def _apply(state: State, table: "IcebergTable") -> bool:
    from lakehouse.iceberg.evolve import planning

    try:
        with state.progress(f"Changing {table.name}"):
            plan = planning.apply(state.engine, table)
    except LakehouseError as error:
        complain(f"{table.name}: {error}")
        return False
    _print_applied(plan)
    return True


def _print_applied(plan: "Plan") -> None:
    click.echo(f"{plan.table}: as declared" if plan.is_empty else f"{plan.table}:")
    for step in plan.steps:
        click.echo(f"  done: {step.description}")
    for warning in plan.warnings:
        click.echo(f"  warning: {warning}")
