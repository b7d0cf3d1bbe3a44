"""`lakehouse sql`: runs Spark SQL statements on the catalog in one JVM."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command, not_created_yet, plain_name
from lakehouse.cli.output.cell_values import column, json_row
from lakehouse.cli.output.printing import Format, json_list, render
from lakehouse.cli.output.records import table_csv_or_json
from lakehouse.cli.sql_text.read_only import as_query, rejection, require_queries, restrict
from lakehouse.cli.sql_text.statements import split
from lakehouse.cli.sql_text.writes import kept_watermarks, lockable_tables, tables_in
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
    with _locked(state, tables):
        # Queries lock no tables; skip the requests to the catalog.
        before = state.engine.catalog.metadata_locations(tables) if tables else {}
        columns = _run_all(state, parts if write else [*map(as_query, parts)], tables, form)
        after = state.engine.catalog.metadata_locations(tables) if tables else {}
    for table in tables:
        if after.get(table) != before.get(table):
            click.echo(f"{table} {_COMPUTED}", err=True)
    script = " ".join(parts)
    if write and "expire_snapshots" in script.lower():
        click.echo(_EXPIRED, err=True)
    personal = _personal_columns(state, script, columns)
    if personal:
        click.echo(f"This shows personal values unmasked: {'; '.join(personal)}.", err=True)


def _personal_columns(state: State, script: str, shown: Collection[str]) -> list[str]:
    """Return the personal columns of results, by table; columns with another name are unknown."""
    tables = tables_in(script, state.tables_there()) if shown else []
    found = []
    for name in tables:
        # Loads the declarations, which takes seconds.
        columns = state.declared[name].masked_columns if name in state.declared else ()
        personal = sorted(column for column in columns if column.lower() in shown)
        if personal:
            found.append(f"{', '.join(personal)} of {name}")
    return found


def _start(state: State, statements: Sequence[str], write: bool) -> Sequence[str]:
    """Check statements before Spark starts, and return the declared tables to lock."""
    from lakehouse.runtime.deployment import open_engine

    if write:
        tables = lockable_tables(state.declared, statements)
        state.start_spark()
        return tables
    require_queries(statements)
    state.engine = open_engine(state.settings, is_read_only=True)
    state.start_spark()
    restrict(state.engine.spark)
    return ()


def _run_all(
    state: State, statements: Sequence[str], locked: Sequence[str], form: Format
) -> set[str]:
    """Run statements, print their results, and return the names of their columns."""
    columns: set[str] = set()
    is_array = form == "json" and len(statements) > 1
    results: list[str] = []
    try:
        for number, statement in enumerate(statements, start=1):
            with _explained(state, number, len(statements)), state.progress("Running SQL"):
                frame = _run(state, statement, locked)
                text = _rendered(frame, form) if frame.columns else "ok"
            columns.update(name.lower() for name in frame.columns)
            if is_array and frame.columns:
                results.append(text)
            else:
                # Programs read only rows from standard output.
                click.echo(text, err=not frame.columns and form != "table")
    finally:
        if is_array:
            click.echo(json_list(results))
    return columns


@contextmanager
def _locked(state: State, tables: Sequence[str]) -> Iterator[None]:
    """Take the locks of tables, in one order for all processes to avoid deadlocks."""
    from lakehouse.iceberg.commit.lock import table_lock

    with ExitStack() as stack:
        for table in tables:
            with state.progress(f"Waiting for the lock of {table}"):
                stack.enter_context(table_lock(state.engine, table))
        yield


def _run(state: State, statement: str, locked: Sequence[str]) -> "DataFrame":
    spark = state.engine.spark
    # Otherwise Spark would run a different text than the validated one.
    spark.conf.set("spark.sql.variable.substitute", "false")
    with kept_watermarks(state.engine, statement, locked):
        return spark.sql(statement)


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
