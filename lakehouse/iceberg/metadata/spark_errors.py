"""Format a Spark error as one readable line, without the Java stack, the plan and the query."""

import re
from dataclasses import dataclass

from lakehouse.iceberg.metadata.error_explanations import known_error, text_of, without_links
from lakehouse.iceberg.metadata.spark_line import is_spark_3

# Embedded Spark writes `org.….ValidationException: …`, Spark Connect
# `(org.….ValidationException) …`.
_JAVA_CLASS = re.compile(r"^\(?(?:[a-z_][\w$]*\.)+[A-Z][\w$]*(?:Exception|Error)(?:: |\) )")
_KIND = re.compile(r"^(?:\w+\.)*(\w+): ")
_KINDS = ("Py4JJavaError", "Py4JError", "SparkConnectGrpcException", "UnknownException")
"""Error types that only mean that Spark raised an error."""
_PY4J = re.compile(r"^An error occurred while calling [\w.]+\.\s*:?\s*", re.DOTALL)
# Where the message ends and the query, plan or stack starts.
_REST = re.compile(
    r"\n\s*== |;\n|\n\s*'?\w+ .*\n\s*\+- |\n\s*at [\w.$/]+\(|\nJVM stacktrace:|\n\tat "
)
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w{5}\b")
_NO_TABLE = re.compile(
    r"TABLE_OR_VIEW_NOT_FOUND\] The table or view ((?:`[^`]*`\.?)+) cannot be found"
)
_PLACE = re.compile(r"line (\d+),? pos (\d+)")
_ENGINE_CONDITIONS = (
    "INTERNAL_ERROR",
    "FAILED_READ_FILE",
    "FAILED_EXECUTE",
    "CONNECT",
    "SESSION",
    "SPARK_JOB_CANCELLED",
)
"""Prefixes of error conditions that are not caused by the query."""
_WORKER = "Traceback (most recent call last):"
_POSITION = re.compile(r"== SQL \(line (\d+), position (\d+)\)")


def one_line(error: BaseException) -> str:
    """Return an error's message in one line, with the position in the query if known."""
    full_text = text_of(error)
    kind, _, text = full_text.partition(": ")
    return known_error(full_text) or _shortened(text, kind)


def plain(text: str) -> str:
    """Return stored error text in one line, without a Java stack; it starts with its type."""
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
    """Return the position in the query, as ` (line 1, position 15)`; empty if unknown."""
    position = _POSITION.search(str(error))
    return f" (line {position[1]}, position {position[2]})" if position else ""


def line_of(error: BaseException) -> int | None:
    """Return the line of the query with the error, from 1; None if unknown."""
    match = _POSITION.search(str(error)) or _PLACE.search(str(error))
    return int(match[1]) if match else None


@dataclass(frozen=True)
class MissingTable:
    """A missing table of a query, and its position in the query."""

    name: str
    place: str


def missing_table(error: BaseException) -> MissingTable | None:
    """Return the missing table that an error reports; None for other errors."""
    missing = _NO_TABLE.search(str(error))
    if missing is None:
        return None
    at = _PLACE.search(str(error))
    # Here Spark counts columns from 0.
    where = f" (line {at[1]}, position {int(at[2]) + 1})" if at else ""
    return MissingTable(missing[1].replace("`", ""), where)


def is_of_query(error: BaseException) -> bool:
    """Whether an error was caused by a query or its data, and not by Spark itself."""
    condition = condition_of(error)
    if condition is None:
        return False
    return _WORKER in str(error) or (
        bool(condition) and not condition.startswith(_ENGINE_CONDITIONS)
    )


def condition_of(error: BaseException) -> str | None:
    """Return Spark's error condition, empty if it has none; None for errors of other types."""
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException):
        return None
    # Spark 3.5 uses the former name.
    name = "getErrorClass" if is_spark_3() else "getCondition"
    return getattr(error, name)() or ""


def contains_no_rows(error: BaseException) -> bool:
    """Whether an error was raised before any row was read, so that its text contains no values."""
    from pyspark.errors import AnalysisException

    return isinstance(error, AnalysisException)


def _raised_in_worker(text: str) -> str | None:
    """Return the Python error of a user function, from text with a worker's traceback."""
    if _WORKER not in text:
        return None
    lines = text.partition(_WORKER)[2].strip("\n").splitlines()
    return next((line for line in lines if line and not line[0].isspace()), None)
