"""`lakehouse preview`: shows what a full run of a table would change, without publishing."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.cell_values import Cells, columns_named, plain_json
from lakehouse.cli.output.printing import Format, count, print_result, table
from lakehouse.cli.output.record_output import print_records, table_csv_or_json
from lakehouse.cli.tables.diff import TABLE_ROWS, Changes, compare, key_of
from lakehouse.cli.tables.try_table import failure_lines, rule_record

if TYPE_CHECKING:
    from lakehouse.iceberg.values.write_result import Outcome

_BY_PARTITION = ("added", "removed", "changed")


@command("preview")
@click.argument("name", metavar="TABLE")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    help=f"Rows to print; {TABLE_ROWS} in a table, else all.",
)
@table_csv_or_json
def preview(state: State, name: str, limit: int | None, form: Format) -> None:
    """Show what a run of a full table would change.

    Computes all partitions, and stages and audits the result on a branch as a run does. Shows the
    rows that differ from the published rows, counts by partition, and failed rules. The branch
    is then dropped: nothing is published or quarantined. Writers of the table wait meanwhile.

    Rows that a merged table has but its sources do not have stay, as in a run. Personal values
    are masked.
    """
    from lakehouse.orchestration.runs.dry_runs import preview_table

    with state.progress("Reading the declarations"):
        function = state.table_function(name)
    named = state.existing_table(function.table.name)
    if limit is None and form == "table":
        limit = TABLE_ROWS
    changes: list[Changes] = []
    state.start_spark()

    def look(branch: str) -> None:
        changes.append(_compared(state, named, branch, limit))

    suppression = state.project.suppression_list(state.settings)
    with state.progress(f"Computing {named}"):
        outcome = preview_table(state.engine, function, look, suppression)
    _print(outcome, changes[0] if changes else None, form)


def _compared(state: State, name: str, branch: str, limit: int | None) -> Changes:
    from lakehouse.iceberg.diff.diff_plan import plan_diff

    planned = plan_diff(state.engine, name, "main", branch, key_of(state, name))
    return compare(state, planned, limit, by=state.declared[name].overwritten_by)


def _print(outcome: "Outcome", changes: Changes | None, form: Format) -> None:
    if form == "json":
        print_records([_record(outcome, changes)])
        return
    cells = changes.cells if changes else Cells()
    print_result(form, _summary(outcome, changes), cells.columns, cells.rows)
    if changes is None or form == "csv":
        return
    if changes.by_partition:
        names = list(changes.by_partition[0])
        partition_counts = [list(map(plain_json, row.values())) for row in changes.by_partition]
        click.echo(
            table(columns_named(names, _BY_PARTITION), partition_counts, noun="partition")
        )
    if cells.rows:
        click.echo(changes.as_table())


def _summary(outcome: "Outcome", changes: Changes | None) -> list[str]:
    # Rows with duplicate keys cannot be staged.
    found = changes.summary if changes else "no changed row was staged"
    lines = [
        f"{outcome.table}: {found}; nothing is published.",
        *failure_lines(outcome.results),
    ]
    if outcome.quarantined:
        lines.append(f"  {count(outcome.quarantined.rows, 'row')} rejected by rules")
    return lines


def _record(outcome: "Outcome", changes: Changes | None) -> Mapping[str, Any]:
    counts = changes.counts if changes else None
    return {
        "table": outcome.table,
        "added": counts.added if counts else 0,
        "removed": counts.removed if counts else 0,
        "changed": counts.changed if counts else 0,
        "refused_rows": outcome.quarantined.rows if outcome.quarantined else 0,
        "broken_rules": [
            rule_record(result) for result in outcome.results if not result.passed
        ],
        "by_partition": list(changes.by_partition) if changes else [],
        "rows": changes.cells.records if changes else [],
    }
