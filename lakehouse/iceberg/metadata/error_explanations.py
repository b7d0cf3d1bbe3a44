"""Errors of Spark whose own text does not say what to do, with an explanation.

They are recognised by their text, because the same error arrives as a Java error, as a Python error
of several libraries, and as what Dagster stored of either. All other errors are shown as they are.
"""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class _Known:
    """A pattern of an error's text, and the explanation; `{0}` is what its group matched."""

    sign: re.Pattern[str]
    says: str


def _known(sign: str, says: str) -> _Known:
    return _Known(re.compile(sign), says)


_JAVA_IS_GONE = "Answer from Java side is empty"
_NO_CAUSE = "Unknown failure"
"""All that Iceberg's JDBC catalog reports of an error of its database."""
_LOOKED_FOR_JAVA = "_lakehouse_looked_for_java"
"""An attribute of errors after which it was waited for the end of Java, for a second."""
_OF_CALLS_TO_JAVA = ("Py4JError", "ConnectionRefusedError", "ConnectionResetError")
_OUT_OF_MEMORY = _known(
    r"OutOfMemoryError|Java heap space|GC overhead limit exceeded",
    "Spark ran out of memory. Set LAKEHOUSE_SPARK_MEMORY to more, such as 4g, or on a cluster"
    " LAKEHOUSE_EXECUTOR_MEMORY, and run this again.",
)
_NO_EXECUTOR_LEFT = _known(r"(All executors on \S+ ended .+? waits longer\.)", "{0}.")
"""What `lakehouse.runtime.lost_executors` says, in the text of the jobs that it cancelled."""
_SPARK_IS_GONE = (
    _NO_EXECUTOR_LEFT,
    _known(
        r"Cannot call methods on a stopped SparkContext|cancelled because SparkContext was shut"
        r" down"
        r"|No active or default Spark session found",
        "Spark ended while this ran. What was published stays; the same command again does what"
        " is left. Why it ended stands in logs/spark.log.",
    ),
    _known(
        rf"{_JAVA_IS_GONE}|Error while sending or receiving|Py4JNetworkError",
        "Spark's Java process ended in the middle of it, as one does that is killed for lack of"
        " memory. What was published stays; the same command again does what is left. Its last"
        " words are in logs/spark.log.",
    ),
    _known(
        r"StatusCode\.UNAVAILABLE|failed to connect to all addresses"
        # A server that was restarted knows nothing of what the one before was asked.
        r"|SESSION_CHANGED|SESSION_CLOSED|SESSION_NOT_FOUND|incorrect server side session"
        r"|OPERATION_ABANDONED|RESPONSE_ALREADY_RECEIVED"
        # A client that was told so says this of all that it is asked later; what asks for a session
        # where there is none raises another kind of error.
        r"|SparkConnectException: \[NO_ACTIVE_SESSION\]",
        "The Spark server ended in the middle of it, or was restarted. What was published"
        " stays; the same command again does what is left.",
    ),
)
_SPARK_ENDED = (_OUT_OF_MEMORY, *_SPARK_IS_GONE)
_KNOWN = (
    _NO_EXECUTOR_LEFT,
    *_SPARK_ENDED,
    _known(
        r"NotFoundException: (?:Failed to open input stream for file|Location does not exist):"
        r" (?:file:)?(\S+)"
        r"|Failed to open input stream for file:"
        r" (?:file:)?(\S+)|FAILED_READ_FILE\.FILE_NOT_EXIST\].*?(\S+/\S+)",
        "The file {0} is missing{1}. Put it back from a backup; `lakehouse doctor` lists all"
        " that are missing.",
    ),
    _known(
        r"No FileSystem for scheme \"?s3|S3AFileSystem not found",
        "The Spark lacks a file system for s3:// (spark.hadoop.fs.s3.impl, and the jar of"
        " hadoop-aws). `lakehouse connect-conf` prints what the server is to be started with."
        " `lakehouse setup` fetches the jars of a Spark that this machine starts.",
    ),
)
_TABLE = re.compile(r"/warehouse/([^/]+)/([^/]+?)(?:-[0-9a-f-]{32,36})?/(?:data|metadata)/")
# What libraries add for those who wrote the program.
_FOR_PROGRAMMERS = re.compile(
    r"\(Background on this error at: [^)]*\)|\[SQL: .*?\](?=\s|$)|\[parameters: .*?\](?=\s|$)"
    r"|For further information visit \S+",
    re.DOTALL,
)


def known_error(text: str) -> str:
    """Return what to say in place of an error's text; nothing where it is not known."""
    return _first_known(_KNOWN, text)


def _first_known(errors: Iterable[_Known], text: str) -> str:
    for known in errors:
        match = known.sign.search(text)
        if match:
            caught = next(filter(None, match.groups()), "").rstrip(".,;)")
            return known.says.format(caught, _whose(caught))
    return ""


def spark_ended(error: BaseException) -> str:
    """Return what to say of an error that came of the end of Spark or of all of its executors, or
    of its lack of memory; nothing of others.
    """
    return _first_known(_SPARK_ENDED, text_of(error))


def is_spark_gone(error: BaseException) -> bool:
    """Whether an error came of the end of Spark or of all of its executors, so that nothing can be
    asked of it any more.
    """
    text = text_of(error)
    return any(known.sign.search(text) for known in _SPARK_IS_GONE)


def text_of(error: BaseException) -> str:
    """Return the kind and the text of an error; that of Java is asked of Java, which may be
    gone by then.
    """
    kind = type(error).__name__
    try:
        text = f"{kind}: {error}"
    except Exception:
        return f"{kind}: {_JAVA_IS_GONE}"
    if _came_of_gone_java(error):
        return f"{text}. {_JAVA_IS_GONE}"
    if _NO_CAUSE in text:
        from lakehouse.iceberg.metadata.pyspark_internals import java_causes

        causes = java_causes(error)
        text = text.replace(_NO_CAUSE, f"{_NO_CAUSE}: {causes[-1]}" if causes else _NO_CAUSE, 1)
    return text


def _came_of_gone_java(error: BaseException) -> bool:
    """Whether an error is what calls to a Java raise that is gone; many do not say so.

    Its text is asked for several times; it is waited for Java's end at the first.
    """
    if type(error).__name__ not in _OF_CALLS_TO_JAVA or "pyspark" not in sys.modules:
        return False
    from lakehouse.iceberg.metadata.pyspark_internals import has_jvm_ended

    is_first = not hasattr(error, _LOOKED_FOR_JAVA)
    setattr(error, _LOOKED_FOR_JAVA, True)
    return has_jvm_ended(wait=is_first)


def without_links(text: str) -> str:
    """Return an error's text without the query and the link that a library added to it."""
    return _FOR_PROGRAMMERS.sub("", text)


def _whose(path: str) -> str:
    match = _TABLE.search(path)
    return f", and {match[1]}.{match[2]} needs it" if match else ""
