"""`lakehouse diff`: shows the rows that differ between two snapshots of a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.cell_values import Cells, Rows, columns_named, masked_cells
from lakehouse.cli.output.printing import Format, count, print_result, render, table
from lakehouse.cli.output.record_output import table_csv_or_json

if TYPE_CHECKING:
    from lakehouse.iceberg.diff.diff_plan import Diff
    from lakehouse.iceberg.diff.row_diff import Counts

TABLE_ROWS = 100
"""Default row limit of tables in the terminal."""


@command("diff")
@click.argument("name", metavar="TABLE")
@click.option(
    "--from",
    "since",
    metavar="SNAPSHOT",
    help="What to compare with; default: the previous current snapshot.",
)
@click.option(
    "--to",
    "until",
    metavar="SNAPSHOT",
    default="main",
    show_default=True,
    help="What to compare.",
)
@click.option(
    "--key",
    metavar="COLUMNS",
    help="Key columns of rows, such as a,b; default: as declared.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    help=f"Rows to print; {TABLE_ROWS} in a table, else all.",
)
@click.option("--summary", is_flag=True, help="Only count.")
@table_csv_or_json
def diff(
    state: State,
    name: str,
    since: str | None,
    until: str,
    key: str | None,
    limit: int | None,
    summary: bool,
    form: Format,
) -> None:
    """Show the rows that differ between two snapshots.

    A SNAPSHOT is an id, a tag, a branch, or a timestamp with its time zone
    (2026-01-31T08:00:00Z).

    Rows that were only moved to another file do not count. With a key, changed rows are shown
    before and after; without a key, rows are added and removed. Times are in UTC.
    A nested column whose type changed is compared as JSON, so a renamed field is a change.

    Personal values are masked. In a table with personal columns, other text is shown only if
    rows of five people have the same value; otherwise its shape and a mask are shown, since a
    personal value can be in a wrong column. `lakehouse sql` shows it unmasked.
    """
    from lakehouse.iceberg.diff.diff_plan import plan_diff

    named = state.existing_table(name)
    with state.progress("Reading the table's metadata"):
        columns = key_of(state, named)
        if key is not None:
            columns = [part.strip() for part in key.split(",")]
        planned = plan_diff(state.engine, named, since, until, columns)
    if limit is None and form == "table":
        limit = TABLE_ROWS
    result = compare(state, planned, 0 if summary else limit, is_key_named=key is not None)
    _print(planned, result, form, summary)


@dataclass(frozen=True)
class Changes:
    """Number of changed rows, and the rows to show."""

    counts: "Counts"
    cells: Cells
    by_partition: Sequence[Mapping[str, Any]] = field(default=())
    """Number of changed rows by partition value, if requested."""

    @property
    def summary(self) -> str:
        """Change counts as text."""
        counts = self.counts
        return f"{counts.added:,} added, {counts.removed:,} removed, {counts.changed:,} changed"

    def as_table(self, more: str = "") -> str:
        """Return the rows as a table with the total count; `more` is text after it."""
        total = self.counts.added + self.counts.removed + 2 * self.counts.changed
        footer = ""
        rows = self.cells.rows
        if len(rows) < total:
            footer = f"{len(rows):,} of {count(total, 'row')}{more}"
        return table(self.cells.columns, rows, footer=footer)


def key_of(state: State, table: str) -> Sequence[str]:
    """Return the declared key of a table, if it has one."""
    from lakehouse.iceberg.diff.diff_plan import declared_key

    return declared_key(state.declared[table]) if table in state.declared else ()


def compare(
    state: State,
    planned: "Diff",
    limit: int | None,
    *,
    is_key_named: bool = False,
    by: str | None = None,
) -> Changes:
    """Count the changed rows and read some of them.

    :param limit: number of rows to read; None for all.
    :param is_key_named: the user named the key, so its uniqueness must be checked.
    :param by: column for counts by value.
    """
    from lakehouse.iceberg.diff.row_diff import Counts, check_unique

    if planned.is_empty:
        names = (planned.change_column, *(shared.name for shared in planned.columns))
        return Changes(Counts(), Cells(columns_named(names)))
    state.start_spark()
    with state.progress("Comparing the rows"):
        if is_key_named:
            check_unique(state.engine, planned)
        return _read_changes(state, planned, limit, by)


def _read_changes(state: State, planned: "Diff", limit: int | None, by: str | None) -> Changes:
    from lakehouse.iceberg.diff.row_diff import (
        apply_diff,
        count_by,
        count_changes,
        order_changes,
    )

    # Cached: counting and reading use the diff twice.
    frame = apply_diff(state.engine, planned).persist()
    try:
        counts = count_changes(planned, frame)
        by_partition = count_by(planned, frame, by) if by else []
        changes = order_changes(planned, frame)
        if limit is not None:
            changes = changes.limit(limit)
        # An empty result has the columns too.
        cells = masked_cells(changes, partial(_shown, state, planned))
    finally:
        frame.unpersist()
    return Changes(counts, cells, by_partition)


def _shown(state: State, planned: "Diff", rows: Rows) -> Rows:
    """Return masked rows; columns that are not declared are masked."""
    from lakehouse.iceberg.diff.row_diff import sample_rows
    from lakehouse.tables.masking import PERSON_SAMPLE_ROWS, mask, redacted

    declared, key = state.declared.get(planned.table), state.engine.masking_key
    if declared is None:
        return rows
    is_personal = declared.has_personal_data and bool(rows)
    sampled: Sequence[Mapping[str, Any]] = ()
    if is_personal:
        sampled = [*rows, *sample_rows(state.engine, planned, PERSON_SAMPLE_ROWS)]
    redacted_rows = redacted(key, declared, rows, sampled, is_compared=True)
    unknown = {shared.name for shared in planned.columns} - set(declared.column_names)
    change = planned.change_column
    shown_rows = []
    for row, shown in zip(rows, redacted_rows, strict=True):
        masked = {name: mask(key, row[name]) for name in unknown}
        shown_rows.append({**shown, **masked, change: row[change]})
    return shown_rows


def _print(planned: "Diff", result: Changes, form: Format, summary: bool) -> None:
    counts = result.counts
    by = f" by {', '.join(planned.key)}" if planned.key else ""
    line = (
        f"{planned.table} from {_snapshot(planned.before)} to {_snapshot(planned.after)}"
        f"{by}: {result.summary}"
    )
    if summary and form != "table":
        numbers = ("added", "removed", "changed")
        ends = [
            str(end) if end is not None else None for end in (planned.before, planned.after)
        ]
        columns = columns_named(("from", "to", *numbers), numbers)
        row = [*ends, counts.added, counts.removed, counts.changed]
        click.echo(render(form, columns, [row]))
        return
    print_result(form, [line], result.cells.columns, result.cells.rows)
    if form == "table" and result.cells.rows:
        click.echo(result.as_table("; --limit shows more"))


def _snapshot(snapshot_id: int | None) -> str:
    return "nothing" if snapshot_id is None else str(snapshot_id)
