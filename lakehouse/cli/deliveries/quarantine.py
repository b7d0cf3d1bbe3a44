"""`lakehouse quarantine`: counts, shows, re-evaluates and deletes quarantined rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.call_context import (
    State,
    command,
    not_created_yet,
    plain_name,
    verbose_option,
)
from lakehouse.cli.options import ShowGroup, by_option, why_kept_option
from lakehouse.cli.output.cell_values import columns_named, plain_json, utc_seconds, utc_text
from lakehouse.cli.output.ingest_report import conclude_runs
from lakehouse.cli.output.printing import Format, count, printable, render, table
from lakehouse.cli.output.record_output import print_records, table_csv_or_json
from lakehouse.errors import UsageError
from lakehouse.tables.quoting import meant_name

if TYPE_CHECKING:
    from lakehouse.iceberg.read.cleared_rows import Clearing
    from lakehouse.iceberg.read.quarantined_rows import QuarantinedRows, RowCounts
    from lakehouse.orchestration.runs.backfill_runs import Replayed
    from lakehouse.tables.table import IcebergTable


def all_with_quarantine(state: State) -> "list[IcebergTable]":
    """Return the declared tables with a quarantine, by name."""
    declared = (state.declared[name] for name in sorted(state.declared))
    return [table for table in declared if table.quarantine]


def table_with_quarantine(state: State, name: str) -> "IcebergTable":
    """Return a table by its name or its quarantine's; raises UsageError if it has none."""
    owners = all_with_quarantine(state)
    by_name = {table.name: table for table in owners}
    by_name |= {table.quarantine.name: table for table in owners if table.quarantine}
    if plain_name(name) in by_name:
        return by_name[plain_name(name)]
    table = state.declared_table(name)
    raise UsageError(
        f"{table.name} has no quarantine, since no rule of it quarantines rows;"
        f" {meant_name(table.name, by_name)}"
    )


_SAMPLED = 5
_SHOWN_COUNTS = 40
_COUNTS = ("by", "name", "rows", "first rejected at", "last rejected at")
_CSV = ("by", "name", "rows", "first_refused_at", "last_refused_at")
"""Headings that programs read; they stay."""


@click.group("quarantine", cls=ShowGroup, invoke_without_command=True)
@table_csv_or_json
@click.pass_context
def quarantine(context: click.Context, form: Format) -> None:
    """Count the rows that rules rejected, by table.

    `lakehouse quarantine TABLE` counts the rows of a table by rule and by file, and shows some
    of them; `replay TABLE` re-evaluates them, and `clear TABLE` deletes them. Times are in UTC.
    """
    from lakehouse.iceberg.read.quarantined_rows import count_quarantined

    state: State = context.find_object(State)  # type: ignore[assignment]
    if context.invoked_subcommand is None:
        engine = state.engine
        counts = [
            count_quarantined(engine.catalog, owner) for owner in all_with_quarantine(state)
        ]
        if form == "json":
            print_records(map(_record, counts))
        else:
            click.echo(_csv(counts) if form == "csv" else _table_of_tables(counts))


quarantine.params.append(verbose_option())


@command("show")
@click.argument("name", metavar="TABLE")
@click.option("--rule", metavar="NAME", help="Show rows that break this rule.")
@click.option("--file", metavar="FILE", help="Show rows of this delivered file.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=_SAMPLED,
    show_default=True,
    help="How many rows are shown.",
)
@table_csv_or_json
def show(
    state: State, name: str, rule: str | None, file: str | None, limit: int, form: Format
) -> None:
    """Count the quarantined rows of a table by rule and by file, and show some of them.

    Rows are shown as the table's function returned them, as text, with the violated rules;
    personal values are masked. CSV contains only the counts.
    """
    from lakehouse.iceberg.read.cleared_rows import clearings
    from lakehouse.iceberg.read.quarantined_rows import count_quarantined, sample_quarantined

    owner = table_with_quarantine(state, name)
    assert owner.quarantine is not None
    if not state.engine.catalog.has(owner.quarantine.name):
        raise not_created_yet(owner.quarantine.name)
    counts = count_quarantined(state.engine.catalog, owner)
    if form == "csv":
        click.echo(_csv([counts]))
        return
    rows = sample_quarantined(state.engine, owner, limit, rule=rule, file=file)
    cleared = clearings(state.engine, owner)
    if form == "json":
        print_records(
            [{**_record(counts), "sample": rows, "cleared": list(map(asdict, cleared))}]
        )
        return
    for text in (*_shown(counts, rows), *map(_clearing_line, cleared)):
        click.echo(text)
    if limit and counts.rows and not rows:
        click.echo("No quarantined row matches.")


@command("clear")
@click.argument("name", metavar="TABLE")
@click.option("--rule", metavar="NAME", help="Only rows that break this rule.")
@click.option("--file", metavar="FILE", help="Only rows of this delivered file.")
@why_kept_option
@by_option
def clear(
    state: State, name: str, rule: str | None, file: str | None, why: str, by: str
) -> None:
    """Delete the quarantined rows of a table from its quarantine.

    A table next to the quarantine records the deleted rows without their values, with time,
    user and reason, so that all rows are accounted for. If they are rejected again, they do not
    return; if they pass after a correction, they are inserted into the table.
    """
    from lakehouse.iceberg.write.user_removals import clear_quarantine

    owner = table_with_quarantine(state, name)
    with state.progress(f"Clearing the quarantine of {owner.name}"):
        rows = clear_quarantine(state.engine, owner, by=by, why=why, rule=rule, file=file)
    if rows:
        click.echo(
            printable(f"{owner.name}: {count(rows, 'quarantined row')} cleared by {by}.")
        )
    else:
        click.echo(f"{owner.name}: no such row is in quarantine.")


@command("replay")
@click.argument("name", metavar="TABLE")
def replay(state: State, name: str) -> None:
    """Evaluate the quarantined rows of a table again, and compute what follows.

    Use it after a correction of the table's function, rules or declaration. Passing rows are
    inserted into the table, and the remaining rows stay in quarantine. Partitions with such rows
    are recomputed in full, an unpartitioned table entirely, as by `lakehouse backfill`.
    """
    from lakehouse.orchestration.runs.backfill_runs import replay as judge_again

    owner = table_with_quarantine(state, name)
    with state.progress(f"Computing {owner.name}"):
        replayed = judge_again(state.project.definitions, state.settings, state.engine, owner)
    conclude_runs(replayed.runs, *_describe(owner.name, replayed))


def _describe(table: str, replayed: "Replayed") -> list[str]:
    if not replayed.rows:
        return [f"{table}: no row is in quarantine."]
    stay = replayed.rows - replayed.left
    left = (
        f"{table}: {replayed.left:,} of {count(replayed.rows, 'quarantined row')} left the"
        f" quarantine, {stay:,} remain, {replayed.new_rows:,} new."
    )
    clear = f"Delete rows that cannot be corrected: lakehouse quarantine clear {table} --why …"
    return [left, clear] if stay else [left]


for _command in (show, replay, clear):
    quarantine.add_command(_command)


def _record(counts: "QuarantinedRows") -> dict[str, Any]:
    return {
        "table": counts.table,
        "quarantine": counts.quarantine,
        "rows": counts.rows,
        "first_refused_at": counts.first_at,
        "last_refused_at": counts.last_at,
        "rules": [_counts_record("rule", row_counts) for row_counts in counts.by_rule],
        "files": [_counts_record("file", row_counts) for row_counts in counts.by_file],
    }


def _counts_record(noun: str, row_counts: "RowCounts") -> dict[str, Any]:
    return {
        noun: row_counts.name,
        "rows": row_counts.rows,
        "first_refused_at": row_counts.first_at,
        "last_refused_at": row_counts.last_at,
    }


def _csv(counts: "Iterable[QuarantinedRows]") -> str:
    rows = [[of_table.table, *row] for of_table in counts for row in _counts(of_table)]
    return render("csv", columns_named(("table", *_CSV)), rows)


def _counts(of_table: "QuarantinedRows") -> Iterator[list[Any]]:
    """Yield a row for each rule and file of a table."""
    for noun, by in (("rule", of_table.by_rule), ("file", of_table.by_file)):
        for row_counts in by:
            times = (utc_text(row_counts.first_at), utc_text(row_counts.last_at))
            yield [noun, row_counts.name, row_counts.rows, *times]


def _table_of_tables(counts: "Sequence[QuarantinedRows]") -> str:
    names = ("table", "rows", "files", "first rejected at", "last rejected at", "rules")
    rows: list[list[Any]] = []
    for of_table in counts:
        times = [utc_seconds(at) if at else "" for at in (of_table.first_at, of_table.last_at)]
        rules = (f"{row_counts.name} {row_counts.rows:,}" for row_counts in of_table.by_rule)
        files = len(of_table.by_file)
        rows.append([of_table.table, of_table.rows, files, *times, ", ".join(rules)])
    return table(columns_named(names, numbers=("rows", "files")), rows, noun="table")


def _shown(counts: "QuarantinedRows", rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not counts.rows:
        yield f"{counts.table}: no row is in quarantine."
        return
    by, more = [*_counts(counts)], ""
    if len(by) > _SHOWN_COUNTS:
        more = f"{_SHOWN_COUNTS} of {len(by):,} rows; --format csv has all"
    yield table(columns_named(_COUNTS, numbers=("rows",)), by[:_SHOWN_COUNTS], footer=more)
    if rows:
        yield ""
        values = [[plain_json(value) for value in row.values()] for row in rows]
        yield table(
            columns_named(rows[0]),
            values,
            footer=f"{len(rows):,} of {count(counts.rows, 'row')}",
        )
    yield f"lakehouse quarantine replay {counts.table}: evaluates them again after a correction."


def _clearing_line(clearing: "Clearing") -> str:
    rows = count(clearing.rows, "row")
    text = f"{rows} cleared by {clearing.by} at {utc_seconds(clearing.at)}: {clearing.why}"
    return printable(text)
