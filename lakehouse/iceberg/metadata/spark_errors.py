"""An error of Spark in one readable line: its message, without the Java stack, the plan and the
query.
"""

import re
from dataclasses import dataclass

from lakehouse.iceberg.metadata.error_explanations import known_error, text_of, without_links
from lakehouse.iceberg.metadata.spark_line import is_spark_3

# The embedded Spark says `org.….ValidationException: …`, Spark Connect
# `(org.….ValidationException) …`.
_JAVA_CLASS = re.compile(r"^\(?(?:[a-z_][\w$]*\.)+[A-Z][\w$]*(?:Exception|Error)(?:: |\) )")
_KIND = re.compile(r"^(?:\w+\.)*(\w+): ")
_KINDS = ("Py4JJavaError", "Py4JError", "SparkConnectGrpcException", "UnknownException")
"""Kinds of error that say no more than that Spark raised it."""
_PY4J = re.compile(r"^An error occurred while calling [\w.]+\.\s*:?\s*", re.DOTALL)
# Where the message ends and the query, the plan or the stack begins.
_REST = re.compile(
    r"\n\s*== |;\n|\n\s*'?\w+ .*\n\s*\+- |\n\s*at [\w.$/]+\(|\nJVM stacktrace:|\n\tat "
)
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w{5}\b")
_NO_TABLE = re.compile(
    r"TABLE_OR_VIEW_NOT_FOUND\] The table or view ((?:`[^`]*`\.?)+) cannot be found"
)
_PLACE = re.compile(r"line (\d+),? pos (\d+)")
_OF_SPARK = (
    "INTERNAL_ERROR",
    "FAILED_READ_FILE",
    "FAILED_EXECUTE",
    "CONNECT",
    "SESSION",
    "SPARK_JOB_CANCELLED",
)
"""How the conditions begin that Spark names where it is not the query that is wrong."""
_WORKER = "Traceback (most recent call last):"
_POSITION = re.compile(r"== SQL \(line (\d+), position (\d+)\)")


def one_line(error: BaseException) -> str:
    """Return the message of an error in one line, with the place in the query where Spark tells
    it.
    """
    whole = text_of(error)
    kind, _, text = whole.partition(": ")
    return known_error(whole) or _shortened(text, kind)


def plain(text: str) -> str:
    """Return in one line what was kept of an error, which begins with its kind: without a Java
    stack or a link.
    """
    explained = known_error(text)
    if explained:
        return explained
    prefix = _KIND.match(text)
    if prefix is None:
        return _shortened(text, "")
    kind = prefix[1]
    line = _shortened(text[prefix.end() :], kind)
    return line if kind in _KINDS else f"{kind}: {line}"


def _shortened(text: str, otherwise: str) -> str:
    text = without_links(_PY4J.sub("", text)).strip()
    message = _raised_in_worker(text) or _REST.split(text, maxsplit=1)[0]
    message = _SQLSTATE.sub("", _JAVA_CLASS.sub("", message.strip()))
    line = " ".join(message.split()) or otherwise
    return f"{line}{place(text)}"


def place(error: BaseException | str) -> str:
    """Return where in the query an error is, as ` (line 1, position 15)`; nothing where Spark
    does not tell.
    """
    position = _POSITION.search(str(error))
    return f" (line {position[1]}, position {position[2]})" if position else ""


def line_of(error: BaseException) -> int | None:
    """Return the line of the query that an error is in, counted from 1; None where Spark does not
    tell.
    """
    found = _POSITION.search(str(error)) or _PLACE.search(str(error))
    return int(found[1]) if found else None


@dataclass(frozen=True)
class MissingTable:
    """A table that a query names and that is not there, and where in the query."""

    name: str
    place: str


def missing_table(error: BaseException) -> MissingTable | None:
    """Return the table that an error says is not there; None where it says something else."""
    missing = _NO_TABLE.search(str(error))
    if missing is None:
        return None
    at = _PLACE.search(str(error))
    # Spark counts columns from 0 here.
    where = f" (line {at[1]}, position {int(at[2]) + 1})" if at else ""
    return MissingTable(missing[1].replace("`", ""), where)


def is_of_query(error: BaseException) -> bool:
    """Whether an error of Spark is of a query or of the rows that it read, and not of Spark
    itself.
    """
    condition = condition_of(error)
    if condition is None:
        return False
    return _WORKER in str(error) or (bool(condition) and not condition.startswith(_OF_SPARK))


def condition_of(error: BaseException) -> str | None:
    """Return the name that Spark has for what went wrong, empty where it has none; None of errors
    that are not Spark's.
    """
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException):
        return None
    # Spark 3.5 has it by its former name.
    name = "getErrorClass" if is_spark_3() else "getCondition"
    return getattr(error, name)() or ""


def tells_no_rows(error: BaseException) -> bool:
    """Whether an error was raised before a row was read, so that its text can hold no value of
    one.
    """
    from pyspark.errors import AnalysisException

    return isinstance(error, AnalysisException)


def _raised_in_worker(text: str) -> str | None:
    """Return what Python raised in a function of a user, of a text that has the traceback of
    the worker.
    """
    if _WORKER not in text:
        return None
    lines = text.partition(_WORKER)[2].strip("\n").splitlines()
    return next((line for line in lines if line and not line[0].isspace()), None)
