"""Format a Spark error as one readable line, without the Java stack, the plan and the query."""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from lakehouse.iceberg.catalog.iceberg_release import is_spark_3


@dataclass(frozen=True)
class _Known:
    """A pattern of error text and its explanation; `{0}` is the matched group."""

    sign: str
    explanation: str


_NO_JAVA_ANSWER = "Answer from Java side is empty"
_NO_CAUSE = "Unknown failure"
"""Iceberg's JDBC catalog reports only this text for a database error."""
_JVM_CHECKED = "_lakehouse_looked_for_java"
"""Attribute of errors for which the JVM's exit was already awaited, for one second."""
_JAVA_CALL_ERRORS = ("Py4JError", "ConnectionRefusedError", "ConnectionResetError")
_OUT_OF_MEMORY = _Known(
    r"OutOfMemoryError|Java heap space|GC overhead limit exceeded",
    "Spark ran out of memory. Set LAKEHOUSE_SPARK_MEMORY to more, such as 4g, or on a cluster"
    " LAKEHOUSE_EXECUTOR_MEMORY, and run this again.",
)
_EXIT_ERRORS = (
    _Known(
        r"Cannot call methods on a stopped SparkContext|cancelled because SparkContext was shut"
        r" down"
        r"|No active or default Spark session found",
        "Spark ended while this ran. What was published stays; run the same command again to do"
        " the rest. The cause is in logs/spark.log.",
    ),
    _Known(
        rf"{_NO_JAVA_ANSWER}|Error while sending or receiving|Py4JNetworkError",
        "Spark's Java process ended in the middle of it, as one does that is killed for lack of"
        " memory. What was published stays; run the same command again to do the rest. Its last"
        " messages are in logs/spark.log.",
    ),
    _Known(
        r"StatusCode\.UNAVAILABLE|failed to connect to all addresses"
        # A restarted server does not know the operations of its predecessor.
        r"|SESSION_CHANGED|SESSION_CLOSED|SESSION_NOT_FOUND|incorrect server side session"
        r"|OPERATION_ABANDONED|RESPONSE_ALREADY_RECEIVED"
        # A client repeats this error for each later call. Missing sessions raise another kind
        # of error.
        r"|SparkConnectException: \[NO_ACTIVE_SESSION\]",
        "The Spark server ended in the middle of it, or was restarted. What was published"
        " stays; run the same command again to do the rest.",
    ),
)
_EXIT_OR_MEMORY_ERRORS = (_OUT_OF_MEMORY, *_EXIT_ERRORS)
_KNOWN = (
    *_EXIT_OR_MEMORY_ERRORS,
    _Known(
        r"NotFoundException: (?:Failed to open input stream for file|Location does not exist):"
        r" (?:file:)?(\S+)"
        r"|Failed to open input stream for file:"
        r" (?:file:)?(\S+)|FAILED_READ_FILE\.FILE_NOT_EXIST\].*?(\S+/\S+)",
        "The file {0} is missing{1}. Restore it from a backup; `lakehouse doctor` lists all"
        " missing files.",
    ),
    _Known(
        r"No FileSystem for scheme \"?s3|S3AFileSystem not found",
        "The Spark lacks a file system for s3:// (spark.hadoop.fs.s3.impl, and the jar of"
        " hadoop-aws). `lakehouse connect-conf` prints what the server is to be started with."
        " `lakehouse setup` fetches the jars of a Spark that this machine starts.",
    ),
)
_TABLE = re.compile(r"/warehouse/([^/]+)/([^/]+?)(?:-[0-9a-f-]{32,36})?/(?:data|metadata)/")
# Text that libraries add for developers.
_FOR_PROGRAMMERS = re.compile(
    r"\(Background on this error at: [^)]*\)|\[SQL: .*?\](?=\s|$)|\[parameters: .*?\](?=\s|$)"
    r"|For further information visit \S+",
    re.DOTALL,
)


def known_error(text: str) -> str:
    """Return the explanation of an error's text; empty if it is unknown."""
    return _first_known(_KNOWN, text)


def _first_known(errors: Iterable[_Known], text: str) -> str:
    for known in errors:
        match = re.search(known.sign, text)
        if match:
            caught = next(filter(None, match.groups()), "").rstrip(".,;)")
            return known.explanation.format(caught, _whose(caught))
    return ""


def spark_exit_explanation(error: BaseException) -> str:
    """Return the explanation of Spark's exit or lack of memory; empty for other errors."""
    return _first_known(_EXIT_OR_MEMORY_ERRORS, text_of(error))


def has_spark_exited(error: BaseException) -> bool:
    """Whether an error was caused by the exit of Spark."""
    text = text_of(error)
    return any(re.search(known.sign, text) for known in _EXIT_ERRORS)


def text_of(error: BaseException) -> str:
    """Return the kind and text of an error; Java errors query the JVM, which can have exited."""
    kind = type(error).__name__
    try:
        text = f"{kind}: {error}"
    except Exception:
        return f"{kind}: {_NO_JAVA_ANSWER}"
    if _is_jvm_exit(error):
        return f"{text}. {_NO_JAVA_ANSWER}"
    if _NO_CAUSE in text:
        from lakehouse.iceberg.frames.pyspark_internals import java_causes

        causes = java_causes(error)
        text = text.replace(_NO_CAUSE, f"{_NO_CAUSE}: {causes[-1]}" if causes else _NO_CAUSE, 1)
    return text


def _is_jvm_exit(error: BaseException) -> bool:
    """Whether a call failed because the JVM exited; only the first call waits for the exit."""
    if type(error).__name__ not in _JAVA_CALL_ERRORS or "pyspark" not in sys.modules:
        return False
    from lakehouse.iceberg.frames.pyspark_internals import has_jvm_exited

    is_first = not hasattr(error, _JVM_CHECKED)
    setattr(error, _JVM_CHECKED, True)
    return has_jvm_exited(wait=is_first)


def _whose(path: str) -> str:
    match = _TABLE.search(path)
    return f", and {match[1]}.{match[2]} needs it" if match else ""


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
    text = _FOR_PROGRAMMERS.sub("", _PY4J.sub("", text)).strip()
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


def missing_table(error: BaseException) -> str | None:
    """Return the missing table that an error reports; None for other errors."""
    missing = _NO_TABLE.search(str(error))
    return missing[1].replace("`", "") if missing else None


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
