"""`lakehouse plan` and `lakehouse apply`: what the declarations ask of the tables, and doing it."""

from typing import TYPE_CHECKING

import click

from lakehouse.cli.output import complain
from lakehouse.cli.records import plan_record, print_records, text_or_json
from lakehouse.cli.state import State, command
from lakehouse.errors import LakehouseError

if TYPE_CHECKING:
    from lakehouse.iceberg.evolving.evolution import Plan
    from lakehouse.iceberg.table import IcebergTable


@command("plan")
@click.argument("names", metavar="[TABLE]...", nargs=-1)
@click.option("--check", is_flag=True, help="Exit with 1 where a change is pending.")
@text_or_json
def plan(state: State, names: tuple[str, ...], check: bool, form: str) -> None:
    """Show what the declarations would change.

    In all tables where none is named. A line marked "by lakehouse apply" waits for that; the others happen by
    themselves at the next write.
    """
    from lakehouse.iceberg.evolving.evolution import plan_now

    with state.progress("Reading the tables' metadata"):
        found = [plan_now(state.engine, table) for table in _named(state, names)]
    if form == "json":
        print_records(map(plan_record, found))
    else:
        for one in found:
            _print_plan(one)
    pending = [one.table for one in found if not one.is_empty]
    if check and pending:
        raise LakehouseError(
            f"{len(pending)} of {len(found)} tables are not as declared: {', '.join(pending)}.",
            next_step="`lakehouse apply` makes the changes.",
        )


@command("apply")
@click.argument("names", metavar="[TABLE]...", nargs=-1)
def apply(state: State, names: tuple[str, ...]) -> None:
    """Bring tables to their declarations.

    All tables where none is named. A change that would lose data or break readers is refused, and the others are made.
    """
    refused = [table.name for table in _named(state, names) if not _applied(state, table)]
    if refused:
        click.get_current_context().exit(1)


def _named(state: State, names: tuple[str, ...]) -> "list[IcebergTable]":
    """Return the tables of these names, or all; a feed's with the columns that its files added by themselves."""
    from lakehouse.ingestion.frame import landing_table

    feeds = {feed.table: feed for feed in state.feeds.values()}
    tables = [state.declared_table(name) for name in names or sorted(state.declared)]
    return [
        landing_table(feeds[table.name], table, state.engine.catalog)[0] if table.name in feeds else table
        for table in tables
    ]


def _applied(state: State, table: "IcebergTable") -> bool:
    from lakehouse.iceberg.evolving import evolution

    try:
        with state.progress(f"Changing {table.name}"):
            done = evolution.apply(state.engine, table)
    except LakehouseError as error:
        complain(f"{table.name}: {error}")
        return False
    _print_done(done)
    return True


def _print_plan(found: "Plan") -> None:
    lines = found.describe()
    click.echo(f"{found.table}: as declared" if found.is_empty else f"{found.table}:")
    for line in lines:
        click.echo(f"  {line}")


def _print_done(done: "Plan") -> None:
    click.echo(f"{done.table}: as declared" if done.is_empty else f"{done.table}:")
    for step in done.steps:
        click.echo(f"  done: {step.describe()}")
    for warning in done.warnings:
        click.echo(f"  warning: {warning}")
