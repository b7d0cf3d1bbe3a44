"""A file's header against its feed's declaration; decides, and reads nothing.

A file without a header shows its first row where names should be. So of a feed that identifies
people, a name that is not declared is shown only where it is like a declared one; else its
shape is, where the other names prove that this is a header.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from lakehouse.errors import FileRejected
from lakehouse.tables.escaping import quoted
from lakehouse.tables.feed import INGEST_COLUMNS, Feed
from lakehouse.tables.masking import shape

_SHOWN_NAMES = 30
_ALIKE = 0.75
_NEW_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_]*$")


@dataclass(frozen=True)
class Header:
    """What of a file is read: `names` are all of its columns in their order, `added` those that
    bronze gets anew.
    """

    names: tuple[str, ...]
    taken: tuple[str, ...]
    """The declared ones that it has, in the feed's order, then the added ones."""
    added: tuple[str, ...] = ()


def plan_header(feed: Feed, names: Sequence[str]) -> Header:
    """Decide which of a file's columns are read.

    :raises FileRejected: no header, or one with a missing, repeated or undeclared column.
    """
    if not set(names) & set(feed.column_names):
        raise _no_header(feed, names)
    missing = [
        name for name in feed.column_names if name in feed.required_names and name not in names
    ]
    unknown = [name for name in names if name not in feed.column_names]
    said = _Said(feed, tuple(names), is_proven=not missing or not feed.has_personal_columns)
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise said.rejected(
            f"repeated {said.columns(repeated)}",
            "Name each column once, and put the file back.",
        )
    if missing:
        raise said.rejected(
            f"missing {said.columns(missing)}", "Deliver the column, or declare it optional."
        )
    if unknown and feed.on_new_column == "reject":
        step = "Leave the column out, or declare it, or set on_new_column to 'ignore' or 'add'."
        raise said.rejected(f"unknown {said.columns(unknown)}", step)
    added = tuple(unknown) if feed.on_new_column == "add" else ()
    unfit = [name for name in added if not _can_be_added(feed, name, added)]
    if unfit:
        step = (
            "Rename it to letters, digits and underscores, unlike any other name when case is"
            " ignored."
        )
        raise said.rejected(
            f"unknown {said.columns(unfit)} that bronze cannot have by that name", step
        )
    taken = tuple(name for name in feed.column_names if name in names)
    return Header(tuple(names), (*taken, *added), added)


@dataclass(frozen=True)
class _Said:
    feed: Feed
    names: tuple[str, ...]
    is_proven: bool

    def columns(self, names: Iterable[str]) -> str:
        names = list(names)
        word = "column" if len(names) == 1 else "columns"
        return f"{word} {self.shown(names)}"

    def shown(self, names: Sequence[str]) -> str:
        told = [
            name for name in names if self.is_proven or _is_written_otherwise(self.feed, name)
        ]
        hidden = len(names) - len(told)
        said = [self._name(name) for name in told[:_SHOWN_NAMES]]
        said += [f"{len(told) - _SHOWN_NAMES} more"] if len(told) > _SHOWN_NAMES else []
        said += [f"{hidden} not declared"] if hidden else []
        return ", ".join(said)

    def _name(self, name: str) -> str:
        if not self.feed.has_personal_columns or _is_like_declared(self.feed, name):
            return quoted(name)
        return f"no. {self.names.index(name) + 1} ({shape(name)})"

    def rejected(self, reason: str, next_step: str) -> FileRejected:
        found = f"a header with {self.shown(self.names)}"
        return FileRejected(
            reason, found=found, expected=expected_header(self.feed), next_step=next_step
        )


def expected_header(feed: Feed) -> str:
    """Say which header the feed's files have."""
    optional = [quoted(name) for name in feed.column_names if name not in feed.required_names]
    said = ", ".join(quoted(name) for name in feed.column_names if name in feed.required_names)
    return f"{said} in any order" + (
        f", and optionally {', '.join(optional)}" if optional else ""
    )


def _no_header(feed: Feed, names: Sequence[str]) -> FileRejected:
    fields = "one field" if len(names) == 1 else f"{len(names)} fields"
    return FileRejected(
        "no header",
        found=f"a first row of {fields}, none of them the name of a declared column",
        expected=expected_header(feed),
        next_step="Put the column names in the first row, separated by commas.",
    )


def _is_written_otherwise(feed: Feed, name: str) -> bool:
    """Whether a name is a declared one but for spaces, signs, or what cannot be seen."""
    return _letters(name) in {_letters(declared) for declared in feed.column_names}


def _is_like_declared(feed: Feed, name: str) -> bool:
    declared = [_letters(column) for column in feed.column_names]
    return bool(get_close_matches(_letters(name), declared, 1, _ALIKE))


def _letters(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


def _can_be_added(feed: Feed, name: str, added: Sequence[str]) -> bool:
    taken = [
        column.lower()
        for column in (*feed.column_names, *(column.name for column in INGEST_COLUMNS), *added)
    ]
    return bool(_NEW_NAME.match(name)) and taken.count(name.lower()) == 1
