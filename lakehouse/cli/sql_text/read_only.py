"""`lakehouse sql` without `--write`: a session and statements that can only read.

A statement starts with words that only queries have, or it is run in parentheses, where Spark's
grammar accepts nothing but a query.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakehouse.cli.sql_text.statements import first_word
from lakehouse.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
        if _PROGRAM.search(statement.upper()):
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
