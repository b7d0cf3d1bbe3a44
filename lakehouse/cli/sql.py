"""`lakehouse sql`: any Spark SQL on the catalog, one statement or several, in one JVM."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command, not_created_yet, plain_name
from lakehouse.cli.output.cell_values import column, json_row
from lakehouse.cli.output.printing import Format, json_list, render
from lakehouse.cli.output.records import table_csv_or_json
from lakehouse.cli.sql_text.clear_values import ShownColumns
from lakehouse.cli.sql_text.effects import describe_effect, list_snapshots
from lakehouse.cli.sql_text.procedures import (
    called_tables,
    carry_after,
    carry_before,
    check_calls,
    name_maintain,
)
from lakehouse.cli.sql_text.statements import split
from lakehouse.cli.text_input import read_standard_input
from lakehouse.cli.write_permission import find_written_tables, refuse_loss_of_refused_rows
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.iceberg.metadata.collected_rows import collect
from lakehouse.iceberg.metadata.spark_errors import MissingTable, missing_table, one_line
from lakehouse.tables.suggestions import near_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@command("sql")
@click.argument("statements")
@table_csv_or_json
@click.option("--write", is_flag=True, help="Let statements change declared tables.")
def sql(state: State, statements: str, form: Format, write: bool) -> None:
    """Run Spark SQL on the tables.

    Such as lakehouse sql "SELECT * FROM silver.fruits". Several statements are separated by
    semicolons; `-` reads them from standard input; in JSON, those of several that have rows are
    one array of arrays. Times are in UTC. Spark's ${…} is not replaced: what a statement does
    is told by its text.
    """
    parts = split(read_standard_input("statements") if statements == "-" else statements)
    if not parts:
        raise UsageError(
            "There is no statement to run.",
            next_step='Say for example lakehouse sql "SHOW NAMESPACES".',
        )
    check_calls(parts)
    refuse_loss_of_refused_rows(state, parts)
    written = find_written_tables(state, parts)
    if not write:
        written.require_permission()
    state.start_spark()
    locked, shown = sorted({*written.tables, *called_tables(parts)}), ShownColumns()
    with _locked(state, locked), _printing(form, len(parts)) as show:
        for number, statement in enumerate(parts, start=1):
            with _explained(state, number, len(parts)), state.progress("Running SQL"):
                text, is_result = _run(state, statement, written.tables, form, shown)
            show(text, is_result)
    for line in (*written.describe_recomputed(), *name_maintain(parts)):
        click.echo(line, err=True)
    notice = shown.notice(state.tables_there, lambda: state.declared)
    if notice:
        click.echo(notice, err=True)


@contextmanager
def _printing(form: Format, statements: int) -> Iterator[Callable[[str, bool], None]]:
    """Print each result as it comes; those of several statements in JSON as one array, also
    where one fails.
    """
    is_array = form == "json" and statements > 1
    results: list[str] = []

    def show(text: str, is_result: bool) -> None:
        # What is not a row stays out of what a program reads.
        if not is_result:
            click.echo(text, err=form != "table")
        elif is_array:
            results.append(text)
        else:
            click.echo(text)

    try:
        yield show
    finally:
        if is_array:
            click.echo(json_list(results))


@contextmanager
def _locked(state: State, tables: Sequence[str]) -> Iterator[None]:
    """Hold the locks of the declared tables, in one order for all, so that nobody waits in a
    circle.
    """
    from lakehouse.iceberg.commit.lock import table_lock

    with ExitStack() as stack:
        for table in tables:
            with state.progress(f"Waiting for the lock of {table}"):
                stack.enter_context(table_lock(state.engine, table))
        yield


def _run(
    state: State, statement: str, locked: Sequence[str], form: Format, shown: ShownColumns
) -> tuple[str, bool]:
    """Run one statement; return what to print, and whether that is rows.

    :param locked: the declared tables that may be written to.
    """
    spark = state.engine.spark
    # A statement before it may have set this: what is put in place of `${…}` nobody has checked.
    spark.conf.set("spark.sql.variable.substitute", "false")
    carry_before(state.engine, statement, locked)
    before = list_snapshots(state.engine.catalog, statement)
    frame = spark.sql(statement)
    carry_after(state.engine, statement)
    shown.add(statement, frame.columns)
    if not frame.columns:
        return describe_effect(state.engine.catalog, statement, before), False
    return _rendered(frame, form), True


def _rendered(frame: "DataFrame", form: Format) -> str:
    schema = frame.schema
    rows = [json_row(row, schema) for row in collect(frame)]
    return render(form, [column(field.name, field.dataType) for field in schema.fields], rows)


@contextmanager
def _explained(state: State, number: int, total: int) -> Iterator[None]:
    """Turn an error of Spark into one line, with the number of the statement where there are
    several.
    """
    try:
        yield
    except LakehouseError:
        raise
    except Exception as error:
        which = f"statement {number} of {total}: " if total > 1 else ""
        missing = missing_table(error)
        if missing:
            raise _no_table(state, missing, which) from error
        raise LakehouseError(f"{which}{one_line(error)}") from error


def _no_table(state: State, missing: MissingTable, which: str) -> LakehouseError:
    """Return the error for a table that does not exist, with the near name: that of every other
    command.
    """
    name = plain_name(missing.name)
    if name in state.known_tables() and not state.engine.catalog.has(name):
        return not_created_yet(f"{which}{name}{missing.place}")
    near = near_name(name, state.known_tables())
    hint = f"did you mean {near}?" if near else "`lakehouse status` lists the tables."
    return UsageError(f"{which}There is no table or view {name}{missing.place}; {hint}")
