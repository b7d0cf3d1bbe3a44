"""`lakehouse sql`: runs Spark SQL statements on the catalog in one JVM."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command, not_created_yet, plain_name
from lakehouse.cli.output.cell_values import column, json_row
from lakehouse.cli.output.printing import Format, json_list, render
from lakehouse.cli.output.records import table_csv_or_json
from lakehouse.cli.sql_text.clear_values import ShownColumns
from lakehouse.cli.sql_text.effects import describe_effect, list_snapshots
from lakehouse.cli.sql_text.read_only import as_query, rejection, require_queries, restrict
from lakehouse.cli.sql_text.statements import split
from lakehouse.cli.sql_text.writes import kept_watermarks, lockable_tables
from lakehouse.cli.text_input import read_standard_input
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.iceberg.metadata.collected_rows import collect
from lakehouse.iceberg.metadata.spark_errors import MissingTable, missing_table, one_line
from lakehouse.tables.suggestions import near_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COMPUTED = "is computed from its declaration: the next run may recompute these rows."
_EXPIRED = (
    "`lakehouse maintain TABLE` expires old snapshots, and keeps those that tags and readers"
    " need."
)


@command("sql")
@click.argument("statements")
@table_csv_or_json
@click.option("--write", is_flag=True, help="Let statements change tables.")
def sql(state: State, statements: str, form: Format, write: bool) -> None:
    """Run Spark SQL on the tables.

    Such as lakehouse sql "SELECT * FROM silver.fruits". Without `--write` it only reads: SELECT,
    WITH, SHOW, DESCRIBE, EXPLAIN, USE and temporary views. Several statements are separated by
    semicolons; `-` reads them from standard input; in JSON, those of several that have rows are
    one array of arrays. Times are in UTC. Spark's ${…} is not replaced.
    """
    parts = split(read_standard_input("statements") if statements == "-" else statements)
    if not parts:
        raise UsageError(
            "There is no statement to run.",
            next_step='Say for example lakehouse sql "SHOW NAMESPACES".',
        )
    tables = _start(state, parts, write)
    shown = ShownColumns()
    with _locked(state, tables):
        # Queries lock no tables; skip the requests to the catalog.
        before = state.engine.catalog.metadata_locations(tables) if tables else {}
        _run_all(state, parts if write else [*map(as_query, parts)], tables, form, shown)
        after = state.engine.catalog.metadata_locations(tables) if tables else {}
    for table in tables:
        if after.get(table) != before.get(table):
            click.echo(f"{table} {_COMPUTED}", err=True)
    if write and any("expire_snapshots" in statement.lower() for statement in parts):
        click.echo(_EXPIRED, err=True)
    notice = shown.notice(state.tables_there, lambda: state.declared)
    if notice:
        click.echo(notice, err=True)


def _start(state: State, statements: Sequence[str], write: bool) -> Sequence[str]:
    """Check statements before Spark starts, and return the declared tables to lock."""
    from lakehouse.runtime.deployment import open_engine

    if write:
        locations = state.engine.catalog.metadata_locations
        tables = lockable_tables(
            state.declared, lambda name: name in locations([name]), statements
        )
        state.start_spark()
        return tables
    require_queries(statements)
    state.engine = open_engine(state.settings, is_read_only=True)
    state.start_spark()
    restrict(state.engine.spark)
    return ()


def _run_all(
    state: State,
    statements: Sequence[str],
    locked: Sequence[str],
    form: Format,
    shown: ShownColumns,
) -> None:
    """Run statements and print their results; JSON results are one array, also after an error."""
    is_array = form == "json" and len(statements) > 1
    results: list[str] = []
    try:
        for number, statement in enumerate(statements, start=1):
            with _explained(state, number, len(statements)), state.progress("Running SQL"):
                text, is_result = _run(state, statement, locked, form, shown)
            if is_array and is_result:
                results.append(text)
            else:
                # Programs read only rows from standard output.
                click.echo(text, err=not is_result and form != "table")
    finally:
        if is_array:
            click.echo(json_list(results))


@contextmanager
def _locked(state: State, tables: Sequence[str]) -> Iterator[None]:
    """Take the locks of tables, in one order for all processes to avoid deadlocks."""
    from lakehouse.iceberg.commit.lock import table_lock

    with ExitStack() as stack:
        for table in tables:
            with state.progress(f"Waiting for the lock of {table}"):
                stack.enter_context(table_lock(state.engine, table))
        yield


def _run(
    state: State, statement: str, locked: Sequence[str], form: Format, shown: ShownColumns
) -> tuple[str, bool]:
    """Run one statement; return what to print, and whether that is rows."""
    spark = state.engine.spark
    # Otherwise Spark would run a different text than the validated one.
    spark.conf.set("spark.sql.variable.substitute", "false")
    before = list_snapshots(state.engine.catalog, statement)
    with kept_watermarks(state.engine, statement, locked):
        frame = spark.sql(statement)
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
    """Convert Spark errors to one line, with the number of the statement if there are several."""
    try:
        yield
    except LakehouseError:
        raise
    except Exception as error:
        which = f"statement {number} of {total}: " if total > 1 else ""
        if reason := rejection(error):
            raise UsageError(which + reason) from error
        missing = missing_table(error)
        if missing:
            raise _no_table(state, missing, which) from error
        raise LakehouseError(f"{which}{one_line(error)}") from error


def _no_table(state: State, missing: MissingTable, which: str) -> LakehouseError:
    """Return the error for a missing table, with a similar name as in other commands."""
    name = plain_name(missing.name)
    if name in state.known_tables() and not state.engine.catalog.has(name):
        return not_created_yet(f"{which}{name}{missing.place}")
    near = near_name(name, state.known_tables())
    hint = f"did you mean {near}?" if near else "`lakehouse status` lists the tables."
    return UsageError(f"{which}There is no table or view {name}{missing.place}; {hint}")
