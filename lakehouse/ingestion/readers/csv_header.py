"""Check a file's header against its feed declaration; no I/O.

Without a header, the first row may contain personal data. For a feed with personal columns, an
undeclared name is therefore shown only by its position.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakehouse.errors import FileRejected
from lakehouse.tables.feed import DELIMITERS, INGEST_COLUMNS, Feed
from lakehouse.tables.quoting import quoted

_SHOWN_NAMES = 30
_NEW_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_]*$")


@dataclass(frozen=True)
class Header:
    """The planned columns of a file: `names` are all columns in file order, `added` are new in
    bronze.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    """The declared columns in the feed's order, then the added ones."""
    added: tuple[str, ...] = ()


def plan_header(feed: Feed, names: Sequence[str]) -> Header:
    """Decide which columns of a file are read, by their bronze names."""
    if not set(names) & set(feed.column_names):
        raise _no_header(feed, names)
    missing = [
        name for name in feed.column_names if name in feed.required_names and name not in names
    ]
    unknown = [name for name in names if name not in feed.column_names]
    described = _HeaderDescription(feed, tuple(names))
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise described.rejected(
            f"repeated {described.columns(repeated)}",
            "Name each column once, and put the file back.",
        )
    if missing:
        raise described.rejected(
            f"missing {described.columns(missing)}",
            "Deliver the column, or declare it optional.",
        )
    if unknown and feed.on_new_column == "reject":
        step = "Leave the column out, or declare it, or set on_new_column to 'ignore' or 'add'."
        raise described.rejected(f"unknown {described.columns(unknown)}", step)
    added = tuple(unknown) if feed.on_new_column == "add" else ()
    unfit = [name for name in added if not _can_be_added(feed, name, added)]
    if unfit:
        step = (
            "Rename it to letters, digits and underscores, from a letter on, and unlike any other"
            " name when case is ignored."
        )
        raise described.rejected(
            f"unknown {described.columns(unfit)} that bronze cannot have by that name", step
        )
    declared = tuple(name for name in feed.column_names if name in names)
    return Header(tuple(names), (*declared, *added), added)


@dataclass(frozen=True)
class _HeaderDescription:
    feed: Feed
    names: tuple[str, ...]

    def columns(self, names: Iterable[str]) -> str:
        names = list(names)
        word = "column" if len(names) == 1 else "columns"
        return f"{word} {self.shown(names)}"

    def shown(self, names: Sequence[str]) -> str:
        parts = [self._name(name) for name in names[:_SHOWN_NAMES]]
        if len(names) > _SHOWN_NAMES:
            parts.append(f"{len(names) - _SHOWN_NAMES} more")
        return ", ".join(parts)

    def _name(self, name: str) -> str:
        for column in self.feed.declared_columns:
            if column.name == name:
                return quoted(column.name_in_files)
        if self.feed.has_personal_columns:
            return f"no. {self.names.index(name) + 1}"
        return quoted(name)

    def rejected(self, reason: str, next_step: str) -> FileRejected:
        found = f"a header with {self.shown(self.names)}"
        return FileRejected(
            reason, found=found, expected=expected_header(self.feed), next_step=next_step
        )


def expected_header(feed: Feed) -> str:
    columns = feed.declared_columns
    optional = [quoted(column.name_in_files) for column in columns if column.optional]
    required = [quoted(column.name_in_files) for column in columns if not column.optional]
    text = f"{', '.join(required)} in any order"
    return f"{text}, and optionally {', '.join(optional)}" if optional else text


def _no_header(feed: Feed, names: Sequence[str]) -> FileRejected:
    fields = "one field" if len(names) == 1 else f"{len(names)} fields"
    step = f"Put the column names in the first row, separated by {feed.delimiters}."
    alternatives = [mark for mark in DELIMITERS if mark != feed.delimiter and mark in names[0]]
    if len(names) == 1 and alternatives:
        fields = f"one field with {DELIMITERS[alternatives[0]]} in it"
        step = f"{step[:-1]}, or declare Feed(…, delimiter={alternatives[0]!r})."
    return FileRejected(
        "no header",
        found=f"a first row of {fields}, none of them the name of a declared column",
        expected=expected_header(feed),
        next_step=step,
    )


def _can_be_added(feed: Feed, name: str, added: Sequence[str]) -> bool:
    source_names = [column.name for column in INGEST_COLUMNS]
    names = [column.lower() for column in (*feed.column_names, *source_names, *added)]
    return bool(_NEW_NAME.match(name)) and names.count(name.lower()) == 1
