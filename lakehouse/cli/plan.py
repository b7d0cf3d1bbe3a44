"""`lakehouse plan`: what the declarations ask of the tables."""

from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.named_tables import declared_tables
from lakehouse.cli.output.records import plan_record, print_records, text_or_json
from lakehouse.errors import LakehouseError

if TYPE_CHECKING:
    from lakehouse.iceberg.evolve.planning import Plan


@command("plan")
@click.argument("names", metavar="[TABLE]...", nargs=-1)
@click.option("--check", is_flag=True, help="Exit with 1 where a table is not as declared.")
@text_or_json
def plan(state: State, names: tuple[str, ...], check: bool, form: str) -> None:
    """Show what the declarations would change.

    In all tables where none is named. A line marked "by lakehouse apply" waits for that; the
    others happen by themselves at the next write. No write of a table succeeds while one of its
    changes is refused, or a rename or a drop waits. A table that is not there yet is made by its
    first run, and is nothing to --check.
    """
    from lakehouse.iceberg.evolve.planning import declared_by_earlier_version, plan_now
    from lakehouse.orchestration.asset_inputs import partitions_read

    tables = declared_tables(state, names)
    with state.progress("Reading the tables' metadata"):
        graph = state.project.graph
        plans = [
            plan_now(state.engine, table, partitions_read(graph, table.name))
            for table in tables
        ]
        earlier = [
            table.name for table in tables if declared_by_earlier_version(state.engine, table)
        ]
    if form == "json":
        print_records(map(plan_record, plans))
    else:
        for changes in plans:
            _print_plan(changes)
    if earlier:
        click.echo(
            "Not seen: what was changed in a declaration together with the upgrade, since an"
            f" earlier version computed {', '.join(earlier)}. Where something was, `lakehouse"
            " backfill` computes the partitions in full.",
            err=True,
        )
    there = [changes for changes in plans if not changes.is_creation]
    pending = [changes.table for changes in there if not changes.is_empty]
    if check and pending:
        raise LakehouseError(
            f"{len(pending)} of {len(plans)} tables are not as declared: {', '.join(pending)}.",
            next_step="`lakehouse apply` makes the changes.",
        )


def _print_plan(changes: "Plan") -> None:
    click.echo(f"{changes.table}: as declared" if changes.is_empty else f"{changes.table}:")
    for line in changes.describe():
        click.echo(f"  {line}")
