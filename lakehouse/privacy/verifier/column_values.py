"""Decoded values of declared columns are compared, as text, with those of the people, or with
their HMACs.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.iceberg.erasure.arrow_ids import may_be_ids, normal_ids
from lakehouse.privacy.verifier.held_columns import HeldColumn
from lakehouse.privacy.verifier.sought_values import Kind, Sought, SoughtValues
from lakehouse.tables.person import folded, normal_id, person_hmac


class ColumnMatcher(Protocol):
    """Tells which values of a declared column are a person's."""

    def match(self, column: HeldColumn, values: pa.StringArray) -> list[tuple[int, Sought]]:
        """Return the position of each value of a person, and what it stands for."""


class ValueMatcher:
    """Compares with the values themselves."""

    def __init__(self, values: SoughtValues) -> None:
        self._ids: dict[str, dict[str, Sought]] = {}
        self._personal: dict[str, dict[str, Sought]] = {}
        for number, person in enumerate(values.people):
            ids = self._ids.setdefault(person.subject, {})
            for value in sorted(filter(str.strip, person.ids)):
                ids.setdefault(normal_id(value), Sought(number, "id"))
            for column, texts in sorted(person.personal.items()):
                known = self._personal.setdefault(column, {})
                for text in sorted(filter(str.strip, texts)):
                    sought = Sought(number, "personal value", values.is_shared(text))
                    known.setdefault(text, sought)

    def match(self, column: HeldColumn, values: pa.StringArray) -> list[tuple[int, Sought]]:
        """Return the position of each value of a person, and what it stands for."""
        known = (self._ids if column.is_subject else self._personal).get(column.name, {})
        if not known:
            return []
        sought = list(known.values())
        value_set = _comparable(pa.array(list(known), pa.string()), column)
        # Of millions of values few can be one of these; the others are not looked at closely.
        at = np.flatnonzero(_may_be_among(values, value_set, column))
        closer = _comparable(values.take(pa.array(at, pa.int64())), column)
        found: Any = pc.index_in(closer, value_set=value_set)
        indices = found.fill_null(-1).to_numpy(zero_copy_only=False)
        hits = np.flatnonzero(indices >= 0)
        return [(int(at[hit]), sought[indices[hit]]) for hit in hits]


class HmacMatcher:
    """Compares the HMAC of each value: the values themselves are no longer known."""

    def __init__(self, key: bytes, hmacs: Sequence[str]) -> None:
        self._key = key
        self._people = {text.lower(): number for number, text in enumerate(hmacs)}

    def match(self, column: HeldColumn, values: pa.StringArray) -> list[tuple[int, Sought]]:
        """Return the position of each value of a person, and what it stands for."""
        encoded = values.dictionary_encode()
        people = self._people_of(column, encoded.dictionary.to_pylist())
        if not people:
            return []
        kind: Kind = "id" if column.is_subject else "personal value"
        indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        at_people = np.flatnonzero(np.isin(indices, list(people)))
        return [(int(at), Sought(people[indices[at]], kind)) for at in at_people]

    def _people_of(self, column: HeldColumn, values: Iterable[str | None]) -> Mapping[int, int]:
        people = {}
        for index, value in enumerate(values):
            text = value or ""
            text = text if column.is_subject else folded(text)
            person = self._people.get(person_hmac(self._key, column.name, text))
            if person is not None:
                people[index] = person
        return people


def _may_be_among(values: pa.StringArray, wanted: Any, column: HeldColumn) -> Any:
    """Return of each value whether it may be one of some, which are comparable already."""
    if column.is_subject:
        may_be = may_be_ids(values, wanted.to_pylist())
    else:
        stripped = pc.utf8_trim_whitespace(values)
        is_same = pc.is_in(pc.utf8_lower(stripped), value_set=wanted)
        may_be = pc.or_(is_same, pc.invert(pc.string_is_ascii(stripped)))
    return may_be.fill_null(False).to_numpy(zero_copy_only=False)


def _comparable(values: pa.StringArray, column: HeldColumn) -> Any:
    if column.is_subject:
        return normal_ids(values)
    stripped = pc.utf8_trim_whitespace(values)
    composed = pc.utf8_normalize(stripped, form="NFC")  # type: ignore[attr-defined]
    return pc.utf8_lower(composed)


def column_texts(values: Any) -> pa.StringArray:
    """Return values as Spark casts them to a string."""
    kind = values.type
    if pa.types.is_string(kind):
        return cast(pa.StringArray, values)
    if pa.types.is_large_string(kind) or pa.types.is_integer(kind):
        return cast(pa.StringArray, values.cast(pa.string()))
    return pa.array(map(spark_text, values.to_pylist()), pa.string())


def spark_text(value: Any) -> str | None:
    """Return a value as Spark casts it to a string; moments in UTC."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return _moment_text(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        return _float_text(value)
    return str(value)


def _moment_text(moment: datetime) -> str:
    if moment.tzinfo:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    text = moment.isoformat(sep=" ", timespec="microseconds")
    return text.rstrip("0").rstrip(".")


def _float_text(value: float) -> str:
    # An id that pandas made a float, such as 7.0, is still that id.
    return f"{value:.0f}" if value.is_integer() else repr(value)
