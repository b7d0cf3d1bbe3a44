"""`lakehouse sql`: runs Spark SQL statements on the catalog in one JVM."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.options import read_standard_input
from lakehouse.cli.output.cell_values import column, json_row
from lakehouse.cli.output.printing import Format, json_list, render
from lakehouse.cli.output.record_output import table_csv_or_json
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.iceberg.frames.frames import collect
from lakehouse.iceberg.frames.spark_errors import missing_table, one_line
from lakehouse.orchestration.functions.sql_function import Token, tokenize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakehouse.iceberg.catalog.engine import Engine
    from lakehouse.tables.table import IcebergTable


def split(script: str) -> list[str]:
    """Split a script at semicolons; a `BEGIN … END` script is one statement."""
    if first_word(script) == "BEGIN":
        return [script.strip()]
    statements: list[list[Token]] = [[]]
    for token in tokenize(script):
        if token.is_mark(";"):
            statements.append([])
        else:
            statements[-1].append(token)
    return [script[tokens[0].start : tokens[-1].end] for tokens in statements if tokens]


def first_word(statement: str) -> str:
    """Return the first word in capitals."""
    return next((token.keyword for token in tokenize(statement)), "")


def _code(statement: str) -> str:
    """Return a statement in capitals, without its comments, texts and quoted names."""
    tokens = tokenize(statement)
    return " ".join(token.text.upper() for token in tokens if not _QUOTED.match(token.text))


_QUOTED = re.compile(r"[rR]?['\"`]")
_QUERY = re.compile(
    r"""
      (?:SELECT|VALUES|TABLE|SHOW|DESC|DESCRIBE|USE)\b
    | EXPLAIN(?:\s+(?:EXTENDED|CODEGEN|COST|FORMATTED))?
      \s+(?:SELECT|WITH|FROM|VALUES|TABLE|INSERT|DELETE|UPDATE|MERGE)\b
    | CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+VIEW\s+(?:\w+|`[^`]+`)\s+AS\b
    | CALL\s+(?:lakehouse\.)?system\.(?:ancestors_of|create_changelog_view)\s*\(
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
"""Starts of queries. EXPLAIN would run the text of EXECUTE IMMEDIATE."""
_PROGRAM = re.compile(
    r"(?<![A-Z0-9_])(?:TRANSFORM|MAP|REDUCE)(?![A-Z0-9_])"
    r".*(?<![A-Z0-9_])USING(?![A-Z0-9_]|\s*\()",
    re.DOTALL,
)
"""`SELECT TRANSFORM(…) USING '…'` is a query that runs a program; a join has USING (…)."""
_JAVA = ("reflect", "try_reflect", "java_method")
_NO_JAVA = "java.lang.Object"
_IN_PARENTHESES = re.compile(
    r"Syntax error at or near '(INSERT|DELETE|UPDATE|MERGE)'.*== SQL ==\s*\((WITH|FROM)",
    re.DOTALL | re.IGNORECASE,
)


def require_queries(statements: Sequence[str]) -> None:
    """Raise UsageError for a statement that is not a query."""
    for number, statement in enumerate(statements, start=1):
        which = f"statement {number} of {len(statements)}: " if len(statements) > 1 else ""
        word = first_word(statement)
        if _PROGRAM.search(_code(statement)):
            raise UsageError(which + _needs_write("TRANSFORM … USING runs a program"))
        if word not in ("", "WITH", "FROM") and not is_query(statement):
            raise UsageError(which + _needs_write(f"a statement with {word} is not a query"))


def is_query(statement: str) -> bool:
    """Whether the start of a statement is that of a query."""
    return bool(_QUERY.match(statement))


def as_query(statement: str) -> str:
    """Return the text by which Spark runs a statement only if it is a query."""
    return statement if is_query(statement) else f"({statement}\n)"


def restrict(session: "SparkSession") -> None:
    """Replace the functions that call any method of Java, and read no file by its path."""
    session.conf.set("spark.sql.runSQLOnFiles", "false")
    for name in _JAVA:
        # Spark fails each call of a function whose class is not a function.
        session.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION {name} AS '{_NO_JAVA}'")


def rejection(error: Exception) -> str | None:
    """Return why Spark rejected a statement of a read-only session; None for other errors."""
    if f"UDAF '{_NO_JAVA}'" in str(error):
        return _needs_write(f"{', '.join(_JAVA)} call Java")
    found = _IN_PARENTHESES.search(str(error))
    return _needs_write(f"a statement with {found[1]} is not a query") if found else None


def _needs_write(reason: str) -> str:
    return (
        f"{reason}; expected SELECT, WITH, SHOW, DESCRIBE, EXPLAIN or another query; nothing was"
        " changed. Add --write to change tables; a run may recompute the rows of declared ones."
    )


_WORD = re.compile(r"\w+")
_REMOVING = re.compile(
    r"\b(DELETE|TRUNCATE|DROP|REPLACE(?!\s*\()|OVERWRITE|RENAME"
    # Procedures that give the readers of a table another snapshot.
    r"|ROLLBACK_TO_\w+|SET_CURRENT_SNAPSHOT|FAST_FORWARD|CHERRYPICK_SNAPSHOT|PUBLISH_CHANGES)\b",
    re.IGNORECASE,
)


def tables_in(text: str, tables: Iterable[str]) -> list[str]:
    """Return the tables whose name, without its namespace, is a word of a text."""
    words = set(_WORD.findall(text.lower()))
    return sorted(name for name in tables if name.rpartition(".")[2] in words)


def lockable_tables(
    declared: "Mapping[str, IcebergTable]", statements: Sequence[str]
) -> list[str]:
    """Return the declared tables in statements; raises UsageError to protect quarantined rows."""
    owners = {q.name: table.name for table in declared.values() if (q := table.quarantine)}
    lockable: set[str] = set()
    for statement in statements:
        if is_query(statement):
            continue
        named = tables_in(statement, declared)
        removing = _REMOVING.search(statement)
        for quarantine in owners.keys() & set(named) if removing else ():
            raise UsageError(
                f"A statement with {removing[0].upper() if removing else ''} must not name the"
                f" quarantine {quarantine}, whose rows it could delete; nothing was run.",
                next_step=f"`lakehouse quarantine clear {owners[quarantine]} --why …` removes"
                " rows, and records which, who removed them and why.",
            )
        lockable.update(named)
    return sorted(lockable)


@contextmanager
def kept_watermarks(engine: "Engine", statement: str, tables: Iterable[str]) -> Iterator[None]:
    """Preserve the watermarks of tables before expiry and after compaction."""
    from lakehouse.iceberg.commit.kept_watermarks import carry_watermarks

    text = statement.lower()
    for table in tables if "expire_snapshots" in text else ():
        carry_watermarks(engine, table)
    yield
    for table in tables if "rewrite_" in text else ():
        carry_watermarks(engine, table)


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
        _run_all(state, parts if write else [*map(as_query, parts)], tables, form)
        after = state.engine.catalog.metadata_locations(tables) if tables else {}
    for table in tables:
        if after.get(table) != before.get(table):
            click.echo(f"{table} {_COMPUTED}", err=True)
    if write and "expire_snapshots" in " ".join(parts).lower():
        click.echo(_EXPIRED, err=True)


def _start(state: State, statements: Sequence[str], write: bool) -> Sequence[str]:
    """Check statements before Spark starts, and return the declared tables to lock."""
    from lakehouse.orchestration.deployment import open_engine

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
) -> None:
    """Run statements and print their results."""
    is_array = form == "json" and len(statements) > 1
    results: list[str] = []
    try:
        for number, statement in enumerate(statements, start=1):
            with _explained(state, number, len(statements)), state.progress("Running SQL"):
                frame = _run(state, statement, locked)
                text = _rendered(frame, form) if frame.columns else "ok"
            if is_array and frame.columns:
                results.append(text)
            else:
                # Programs read only rows from standard output.
                click.echo(text, err=not frame.columns and form != "table")
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
            # Fails with a similar name, as other commands do.
            state.existing_table(missing)
        raise LakehouseError(f"{which}{one_line(error)}") from error
