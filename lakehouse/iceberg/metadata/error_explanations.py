"""Errors of Spark, of AWS, of databases and of the machine whose own words help nobody: what is
wrong, and what to do.

They are known by their text: the same one comes as a Java error, as a Python error of several
libraries, and as what Dagster kept of either.
"""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class _Known:
    """A sign in the text of an error, and what is said in place of it; `{0}` is what the sign's
    group caught.
    """

    sign: re.Pattern[str]
    says: str


def _known(sign: str, says: str) -> _Known:
    return _Known(re.compile(sign), says)


_FULL = (
    "The disk is full. Free some, `lakehouse doctor` says how much there is; what was published"
    " stays, and the same command again does what is left."
)
_JAVA_IS_GONE = "Answer from Java side is empty"
_NO_CAUSE = "Unknown failure"
"""All that Iceberg's JDBC catalog reports of an error of its database."""
_LOOKED_FOR_JAVA = "_lakehouse_looked_for_java"
"""An attribute of errors after which it was waited for the end of Java, for a second."""
_OF_CALLS_TO_JAVA = ("Py4JError", "ConnectionRefusedError", "ConnectionResetError")
_EXECUTOR_OUT_OF_MEMORY = _known(
    # On one machine the executor of a lost task is the `driver`. 52 is what an executor of Spark
    # exits with that ran out of memory (SparkExitCode.OOM).
    r"Lost task \S+ in stage \S+ \(TID \d+\) \(\S+ executor (?!driver\b)\S+\):[^\n]*?"
    r"(?:OutOfMemoryError|Java heap space|GC overhead limit exceeded"
    r"|[Ee]xit(?:ed with)? (?:code|status):? 52\b"
    r"|killed by YARN for exceeding|OOMKilled)",
    "An executor of Spark ran out of memory, again and again. Set LAKEHOUSE_EXECUTOR_MEMORY to"
    " more, or let whoever starts that Spark, as a server or a job of AWS, give its workers more;"
    " then run this again.",
)
_OUT_OF_MEMORY = _known(
    r"OutOfMemoryError|Java heap space|GC overhead limit exceeded",
    "Spark ran out of memory. Set LAKEHOUSE_SPARK_MEMORY to more, such as 4g, and run this again.",
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
_SPARK_ENDED = (_EXECUTOR_OUT_OF_MEMORY, _OUT_OF_MEMORY, *_SPARK_IS_GONE)
_KNOWN = (
    _NO_EXECUTOR_LEFT,
    _known(r"No space left on device|database or disk is full|SQLITE_FULL|\[Errno 28\]", _FULL),
    _known(
        r"disk I/O error",
        "The disk could not be written: it is full, or fails. `lakehouse doctor` says how much"
        " of it is free; the same command again does what is left.",
    ),
    _known(
        r"SQLITE_BUSY|SQLITE_LOCKED|database (?:table )?is locked",
        "Another process kept a database of this home locked: catalog.db, or one of Dagster's"
        " below dagster/. Wait for that process or end it, then run this again; `fuser FILE`"
        " lists the processes that have a file open.",
    ),
    _known(
        r"SQLITE_READONLY|attempt to write a readonly database",
        "A database of this home is read-only: catalog.db, or one of Dagster's below dagster/."
        " Make the home writable, or set LAKEHOUSE_HOME to a folder that this user can write.",
    ),
    _known(
        r"(?:Permission denied|Read-only file system): '([^']+)'"
        r"|(/\S+) \((?:Permission denied|Read-only file system)\)",
        "This user cannot write or read {0}. Make it accessible; where it is in the home, make"
        " the home writable, or set LAKEHOUSE_HOME to a folder that this user can write.",
    ),
    _known(
        r"System memory \d+ must be at least",
        "LAKEHOUSE_SPARK_MEMORY is too little for Spark; expected at least 512m. Set it to"
        " more, or unset it for 2g.",
    ),
    _known(
        r"NotFoundException: (?:Failed to open input stream for file|Location does not exist):"
        r" (?:file:)?(\S+)"
        r"|Failed to open input stream for file:"
        r" (?:file:)?(\S+)|FAILED_READ_FILE\.FILE_NOT_EXIST\].*?(\S+/\S+)",
        "The file {0} is missing{1}. Put it back from a backup; `lakehouse doctor` lists all"
        " that are missing.",
    ),
    _known(
        r"Unable to locate credentials|Unable to load credentials from|NoCredentialsError",
        "There are no AWS credentials. Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and"
        " AWS_SECRET_ACCESS_KEY, or run where a role is attached.",
    ),
    _known(
        r"You must specify a region|Unable to load region from",
        "No AWS region is set. Set AWS_REGION.",
    ),
    _known(
        r'Could not connect to the endpoint URL: "(\w+://[^/"]+)|Connect timeout on endpoint'
        r' URL: "(\w+://[^/"]+)'
        r"|Unable to execute HTTP request: Connect to (\S+)",
        "AWS does not answer at {0}. Check AWS_ENDPOINT_URL, AWS_REGION and the network.",
    ),
    _known(
        r"NoSuchBucket",
        "The bucket is not there. Correct LAKEHOUSE_BUCKET, or make the bucket in that region.",
    ),
    *_SPARK_ENDED,
    _known(
        r"CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND|Checkpoint block rdd_|ExecutorLostFailure"
        r"|FetchFailed",
        "Executors of Spark ended again and again while this ran, as those do that are killed"
        " for lack of memory, or are taken away. What was published stays; the same command"
        " again does what is left. Why they ended stands in the logs of the cluster.",
    ),
    _known(
        r"No FileSystem for scheme \"?s3|S3AFileSystem not found",
        "The Spark lacks a file system for s3:// (spark.hadoop.fs.s3.impl, and the jar of"
        " hadoop-aws). `lakehouse connect-conf` prints what the server is to be started with."
        " `lakehouse setup` fetches the jars of a Spark that this machine starts.",
    ),
    _known(
        r"StatusCode\.UNAUTHENTICATED|Invalid authentication token",
        "The Spark server asks for another token. Correct `token=` in SPARK_REMOTE.",
    ),
    _known(
        r"database disk image is malformed|file is not a database",
        "A database of this home is damaged: catalog.db, or one of Dagster's below dagster/."
        " Put it back from a backup; `lakehouse doctor` reads catalog.db.",
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

        text += f"\nJVM stacktrace:\n{java_causes(error)}"
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
