"""Reasons of failures without values of rows.

Errors of the lakehouse name tables, columns and files. Errors of Spark, Arrow or Python can quote
the value that they could not read: only their type is shown, and for tables without personal data
their unquoted words. The run contains the full text.
"""

import re
from typing import Any

from lakehouse.orchestration.failure_texts import OWN_ERROR, known_cause
from lakehouse.tables.table import IcebergTable

_VALUES = (
    re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|‘[^’]*’|“[^”]*”"),
    re.compile(r"\S+@\S+"),
    re.compile(r"\d{6,}"),
)
_CONDITION = re.compile(r"^\[([A-Z0-9_.]+)\]")
_LONGEST = 300


def reason_of(error: Any, table: IcebergTable | None) -> str:
    """Return why something failed, from Dagster's serialized error, or an empty string.

    :param table: the affected table; None or one with personal data shows less.
    """
    if error is None:
        return ""
    cause = known_cause(error)
    first = next(iter(cause.message.strip().splitlines()), "")
    if first.startswith(OWN_ERROR):
        return first.removeprefix(OWN_ERROR)[: 2 * _LONGEST]
    kind = cause.cls_name or "An error"
    text = first.removeprefix(f"{kind}: ").rpartition(f"{kind}: ")[2]
    if table is None or table.has_personal_data:
        condition = _CONDITION.match(text)
        name = f"{kind} [{condition[1]}]" if condition else kind
        return f"{name}; its text can contain data, see the run."
    return f"{kind}: {remove_values(text)}"


def remove_values(text: str) -> str:
    """Replace quoted texts, addresses and long numbers."""
    for pattern in _VALUES:
        text = pattern.sub("…", text)
    return text[:_LONGEST]
