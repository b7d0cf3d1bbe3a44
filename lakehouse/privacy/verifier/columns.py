"""Columns that contain data subjects: how they are recognized, and how values are compared."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.iceberg.erasure.arrow_ids import is_id_among, text_of
from lakehouse.privacy.verifier.values import SearchedValues, ValueLabel
from lakehouse.tables.person import folded, normal_id, person_hmac

_LOCATION_SUFFIX = r"(-[0-9a-f-]{32,36})?"
"""The unique end of a table's location."""


class DeclaredColumn(NamedTuple):
    """A declared column: a subject, or a personal column."""

    name: str
    is_subject: bool


@dataclass(frozen=True)
class HeldColumns:
    """The columns of a table, and of the files delivered to it, that contain data subjects."""

    folders: Sequence[str]
    """Below a home or bucket, such as `warehouse/bronze/raw` and `archive/raw`."""
    subjects: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By subject, all names that its column has or had, also in files."""
    personal: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The same by personal column."""
    fields: Mapping[int, str] = field(default_factory=dict)
    """Names by Iceberg's field id; in data files `Member-No` is `Member_x2DNo`."""


Names = Mapping[str, tuple[DeclaredColumn, ...]]
"""Declared columns by a name in a file."""


@dataclass(frozen=True)
class ColumnNames:
    """The declared columns of all tables."""

    tables: Sequence[HeldColumns]

    def of(self, key: str) -> tuple[Names, Mapping[int, str]]:
        """Return the names and field ids of a table's or feed's file; none for other files."""
        known = (names for pattern, names in self._by_folder if pattern.match(key))
        return next(known, ({}, {}))

    @cached_property
    def _by_folder(self) -> list[tuple[re.Pattern[str], tuple[Names, dict[int, str]]]]:
        # A table can contain several subjects, and a folder can be in another one.
        tables: dict[str, list[HeldColumns]] = {}
        for table in self.tables:
            for folder in table.folders:
                tables.setdefault(folder.strip("/"), []).append(table)
        by_folder = []
        for folder in sorted(tables, key=len, reverse=True):
            fields = {
                key: name for table in tables[folder] for key, name in table.fields.items()
            }
            pattern = re.compile(f"{re.escape(folder)}{_LOCATION_SUFFIX}/")
            by_folder.append((pattern, (_names(tables[folder]), fields)))
        return by_folder


def _names(tables: Iterable[HeldColumns]) -> Names:
    declared: dict[str, dict[DeclaredColumn, None]] = {}
    for table in tables:
        for columns, is_subject in ((table.subjects, True), (table.personal, False)):
            for column, names in columns.items():
                for name in {column, *names}:
                    by_name = declared.setdefault(name.strip().lower(), {})
                    by_name[DeclaredColumn(column, is_subject)] = None
    return {name: tuple(columns) for name, columns in declared.items()}


class ValueMatcher:
    """Compares the values themselves."""

    def __init__(self, values: SearchedValues) -> None:
        self._known: dict[DeclaredColumn, dict[str, ValueLabel]] = {}
        for number, person in enumerate(values.people):
            for value in filter(str.strip, person.ids):
                ids = self._known.setdefault(DeclaredColumn(person.subject, True), {})
                ids.setdefault(normal_id(value), ValueLabel(number, "id"))
            for name, texts in person.personal.items():
                known = self._known.setdefault(DeclaredColumn(name, False), {})
                for text in filter(str.strip, texts):
                    label = ValueLabel(number, "personal value", values.is_shared(text))
                    known.setdefault(folded(text), label)

    def match(self, column: DeclaredColumn, texts: pa.StringArray) -> Iterator[ValueLabel]:
        """Yield the label of each value of an erased person."""
        known = self._known.get(column)
        if not known:
            return
        if column.is_subject:
            candidates, comparable = is_id_among(texts, known), normal_id
        else:
            stripped = pc.utf8_trim_whitespace(texts)
            is_same = pc.is_in(pc.utf8_lower(stripped), value_set=pa.array(known, pa.string()))
            # Python compares what is not ASCII.
            candidates = pc.or_(is_same, pc.invert(pc.string_is_ascii(stripped)))
            comparable = folded
        for text in filter(None, texts.filter(candidates).to_pylist()):
            label = known.get(comparable(text))
            if label:
                yield label


class HmacMatcher:
    """Compares the HMAC of each value, once the values are destroyed."""

    def __init__(self, key: bytes, hmacs: Sequence[str]) -> None:
        self._key = key
        self._people = {text.lower(): number for number, text in enumerate(hmacs)}

    def match(self, column: DeclaredColumn, texts: pa.StringArray) -> Iterator[ValueLabel]:
        """Yield the label of each value of an erased person."""
        for text in filter(None, texts.to_pylist()):
            value = text if column.is_subject else folded(text)
            number = self._people.get(person_hmac(self._key, column.name, value))
            if number is not None:
                yield ValueLabel(number, "id" if column.is_subject else "personal value")


Matcher = ValueMatcher | HmacMatcher
Path = tuple[str, ...]


def leaf_columns(path: Path, values: Any) -> Iterator[tuple[Path, Any]]:
    """Yield the columns in an Arrow array that have values of their own."""
    kind = values.type
    if isinstance(values, pa.ExtensionArray):
        yield from leaf_columns(path, values.storage)
    elif pa.types.is_dictionary(kind):
        yield from leaf_columns(path, values.dictionary)
    elif pa.types.is_struct(kind):
        for inner, column in zip(kind, values.flatten(), strict=True):
            yield from leaf_columns((*path, inner.name), column)
    elif pa.types.is_map(kind):
        yield from leaf_columns((*path, "key"), values.keys)
        yield from leaf_columns((*path, "value"), values.items)
    elif pa.types.is_nested(kind):
        yield from leaf_columns(path, values.flatten())
    elif not pa.types.is_null(kind):
        yield path, values


_TEXT_TYPES = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)


def text_block(values: Any) -> bytes | None:
    """Return texts or binary values, separated by NUL; None for another type."""
    if not any(is_text(values.type) for is_text in _TEXT_TYPES):
        return None
    return b"\0".join(values.cast(pa.large_binary()).drop_null().to_pylist())


def column_texts(values: Any) -> pa.StringArray:
    """Return values as Spark casts them to a string."""
    kind = values.type
    if pa.types.is_string(kind):
        return cast(pa.StringArray, values)
    if pa.types.is_large_string(kind) or pa.types.is_integer(kind):
        return cast(pa.StringArray, values.cast(pa.string()))
    return pa.array(map(text_of, values.to_pylist()), pa.string())
