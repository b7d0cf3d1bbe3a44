"""Why something failed, in words that hold no value of a row.

What the lakehouse raises names tables, columns and files. What Spark, Arrow or Python raise may
quote the very value that they could not read, so of that only the kind of error is named, and
words outside of quotes where nothing personal is near. The run has the whole.
"""

import re
from typing import Any

from lakehouse.orchestration.error_causes import OWN_ERROR, causes, known_cause
from lakehouse.tables.table import IcebergTable

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|‘[^’]*’|“[^”]*”")
_ADDRESS = re.compile(r"\S+@\S+")
_LONG_NUMBER = re.compile(r"\d{6,}")
_CONDITION = re.compile(r"^\[([A-Z0-9_.]+)\]")
_LONGEST = 300
_OF_THE_SYSTEM = re.compile(r"^\[Errno \d+\] [A-Za-z ,()-]+(?:: '[^']*'(?: -> '[^']*')?)?$")
"""What the operating system says: which call failed and of which path, and never what stands in
a file.
"""
_WITHOUT_DATA = frozenset(
    {
        "DagsterUserCodeUnreachableError",
        "EndpointConnectionError",
        "MemoryError",
        "NoCredentialsError",
        "NoRegionError",
        "Py4JNetworkError",
    }
)
"""Errors whose text is of processes and addresses, and quotes no data."""


def reason_of(error: Any, table: IcebergTable | None) -> str:
    """Return why something failed, from the error that Dagster kept; nothing where it kept
    none.

    :param table: what it was about; where it holds personal data, or is not known, less is
        told.
    """
    if error is None:
        return ""
    error = _most_telling(error)
    first = next(iter(error.message.strip().splitlines()), "")
    if first.startswith(OWN_ERROR):
        return first.removeprefix(OWN_ERROR)[: 2 * _LONGEST]
    kind = error.cls_name or "An error"
    text = first.removeprefix(f"{kind}: ").rpartition(f"{kind}: ")[2]
    condition = _CONDITION.match(text)
    if kind in _WITHOUT_DATA or _OF_THE_SYSTEM.match(text):
        return f"{kind}: {text[:_LONGEST]}"
    is_personal = table is None or table.has_personal_data
    if is_personal:
        return (
            f"{kind}{f' [{condition[1]}]' if condition else ''}; its text may quote data, the"
            " run has it."
        )
    return f"{kind}: {remove_values(text)}"


def _most_telling(error: Any) -> Any:
    """Return the cause that says most: in our own words, or else in words without data, or else
    the innermost.
    """
    cause = known_cause(error)
    plain = [inner for inner in causes(error) if inner.cls_name in _WITHOUT_DATA]
    return plain[0] if plain and not cause.message.startswith(OWN_ERROR) else cause


def describe_without_values(error: BaseException) -> str:
    """Return what an error of this process says, without values; the path of the operating
    system's stays.
    """
    text = str(error)
    return text[:_LONGEST] if _OF_THE_SYSTEM.match(text) else remove_values(text)


def remove_values(text: str) -> str:
    """Return a text without what is quoted, addresses and long numbers."""
    for pattern in (_QUOTED, _ADDRESS, _LONG_NUMBER):
        text = pattern.sub("…", text)
    return text[:_LONGEST]
