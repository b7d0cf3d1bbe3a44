"""`lakehouse plan`: shows the differences between declarations and tables."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.options import declared_tables
from lakehouse.cli.output.printing import complain, conclude, count
from lakehouse.cli.output.record_output import plan_record, print_records, text_or_json
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
    done = (f"done: {step.description}" for step in plan.steps)
    _print_plan(plan, [*done, *(f"warning: {warning}" for warning in plan.warnings)])
    return True


@command("plan")
@click.argument("names", metavar="[TABLE]...", nargs=-1)
@click.option("--check", is_flag=True, help="Exit with 1 if a table is not as declared.")
@click.option(
    "--functions",
    is_flag=True,
    help="Call each function on inputs without rows, and compare its columns; starts Spark.",
)
@text_or_json
def plan(state: State, names: tuple[str, ...], check: bool, functions: bool, form: str) -> None:
    """Show what the declarations would change.

    Without names: all tables. Changes marked "by lakehouse apply" need that command; the next
    write makes all other changes. Writes of a table fail while one of its changes is rejected
    or a rename or drop is pending. Its first run creates a missing table; --check ignores it.

    With --functions, it fails if a function fails or returns columns that its table does not
    declare, and names all such tables.
    """
    from lakehouse.iceberg.evolve.planning import plan_now

    tables = declared_tables(state, names)
    with state.progress("Reading the tables' metadata"):
        plans = [plan_now(state.engine, table) for table in tables]
    if form == "json":
        print_records(map(plan_record, plans))
    else:
        for changes in plans:
            _print_plan(changes, changes.describe())
    there = [changes for changes in plans if not changes.is_creation]
    pending = [changes.table for changes in there if not changes.is_empty]
    if check and pending:
        raise LakehouseError(
            f"{len(pending)} of {len(plans)} tables are not as declared: {', '.join(pending)}.",
            next_step="`lakehouse apply` makes the changes.",
        )
    if functions:
        _check_functions(state, [table.name for table in tables], form)


def _check_functions(state: State, names: list[str], form: str) -> None:
    from lakehouse.iceberg.erasure.suppression_list import NO_SUPPRESSION
    from lakehouse.ingestion.table_trials import TableTrials

    called = [name for name in names if name in state.functions]
    functions = {name: state.table_function(name) for name in called}
    trials = TableTrials(
        state.engine, functions, state.declared, NO_SUPPRESSION.filter(), limit=0
    )
    problems: list[str] = []
    state.start_spark()
    with state.progress(f"Calling the functions of {count(len(called), 'table')}"):
        for name in called:
            try:
                trials.check_function(name)
            except LakehouseError as error:
                problems.append(str(error))
    fitting = (
        f"{len(called) - len(problems)} of {count(len(called), 'function')} fit their tables"
    )
    conclude([] if form == "json" else [fitting], problems, success=not problems)


def _print_plan(changes: "Plan", lines: Iterable[str]) -> None:
    click.echo(f"{changes.table}: as declared" if changes.is_empty else f"{changes.table}:")
    for line in lines:
        click.echo(f"  {line}")
