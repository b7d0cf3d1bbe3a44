"""People who are erased, as each part of an erasure has to be told of them; no text of it leaves
the process.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from lakehouse.iceberg.erasure.arrow_ids import text_of
from lakehouse.privacy.compared_values import (
    compared,
    may_be_ids,
    telling_texts,
)
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.holders import Holder, Subject
from lakehouse.privacy.table_reading import present_names, read_now
from lakehouse.privacy.value_places import find_owners
from lakehouse.tables.person import Person, normal_id

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import Table

_Rows = TypeVar("_Rows", "pa.RecordBatch", "pa.Table")
_VALUES_AT_ONCE = 4_000_000
"""Distinct values of some files that are kept until each is told once: they take some 100 MB."""


def people_in(
    holder: Holder, persons: Iterable[Person], shared: frozenset[str]
) -> list[Person]:
    """Return people as a table calls what stands for them, without values that somebody else has
    too: by these no row is told to be theirs.
    """
    people = []
    for person in persons:
        own = without_shared(person, shared)
        names = [column.name for column in holder.ids]
        people += [replace(own, subject=name) for name in names] or [own]
    return people


def without_shared(person: Person, shared: frozenset[str]) -> Person:
    """Return a person without the personal values that somebody else has too."""
    personal = {name: values - shared for name, values in person.personal.items()}
    return replace(
        person, personal={name: values for name, values in personal.items() if values}
    )


def by_all_names(erasable: Erasable, persons: Iterable[Person]) -> list[Person]:
    """Return people once for each name that what stands for them has anywhere."""
    people = []
    for person in persons:
        names = erasable.subject_of(person).names
        if person.subject.lower() not in names:
            people.append(person)
            continue
        people += [replace(person, subject=name) for name in sorted(names)]
    return people


def shared_values(erasable: Erasable, persons: Sequence[Person]) -> frozenset[str]:
    """Return the personal values of some people that somebody who remains has now."""
    texts: set[str] = set()
    for person in persons:
        texts.update(*person.personal.values())
    if not texts:
        return frozenset()
    keys = frozenset(map(compared, texts))
    remaining: set[str] = set()
    for subject in erasable.subjects:
        erased = _normal_ids(erasable, subject, persons)
        owners = find_owners(erasable.engine, subject, keys, all_snapshots=False)
        remaining.update(key for (_, key), ids in owners.items() if ids - erased)
    return frozenset(text for text in texts if compared(text) in remaining)


def remaining_values(erasable: Erasable, persons: Sequence[Person]) -> Iterator[str]:
    """Yield the personal values that people who remain have now, by the tables that tell whose
    they are; a value more than once where many rows lie between.

    :param persons: those who do not remain.
    """
    for subject in erasable.subjects:
        erased = _normal_ids(erasable, subject, persons)
        for holder in subject.holders:
            if holder.is_by_id and erasable.engine.catalog.has(holder.table):
                loaded = erasable.engine.catalog.load(holder.table)
                yield from _values_of_others(loaded, holder, erased)


def _normal_ids(
    erasable: Erasable, subject: Subject, persons: Iterable[Person]
) -> frozenset[str]:
    ids: set[str] = set()
    for person in persons:
        if erasable.subject_of(person) == subject:
            ids.update(map(normal_id, person.ids))
    return frozenset(ids)


def _values_of_others(loaded: "Table", holder: Holder, erased: frozenset[str]) -> Iterator[str]:
    assert holder.row_column is not None
    names = present_names(loaded, holder.columns)
    key = names.get(holder.row_column.name)
    columns = [names[column.name] for column in holder.personal if column.name in names]
    columns = [name for name in columns if name != key]
    if key is None or not columns:
        return
    distinct = {name: _Distinct() for name in columns}
    for batch in read_now(loaded, (key, *columns)):
        others = _rows_of_others(batch, key, erased)
        for name, values in distinct.items():
            yield from values.add(others.column(name))
    for values in distinct.values():
        yield from values.rest()


@dataclass
class _Distinct:
    """Values of a column, each told once as long as no more than some millions come: most stand
    in many files.
    """

    _arrays: "list[pa.Array[Any]]" = field(default_factory=list)
    _count: int = 0

    def add(self, values: "pa.Array[Any]") -> Iterator[str]:
        """Take values, and yield the texts of those that are not kept for later."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_nested(values.type):
            yield from _texts(values)
            return
        unique = pc.unique(values)
        self._arrays.append(unique)
        self._count += len(unique)
        if self._count >= _VALUES_AT_ONCE:
            yield from self.rest()

    def rest(self) -> Iterator[str]:
        """Yield the texts of the values that were kept."""
        import pyarrow as pa
        import pyarrow.compute as pc

        arrays, self._arrays, self._count = self._arrays, [], 0
        if arrays:
            yield from _texts(pc.unique(pa.chunked_array(arrays)))


def _rows_of_others(rows: _Rows, key: str, erased: frozenset[str]) -> _Rows:
    """Return the rows that an id tells to be of somebody who is not erased."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = rows.column(key)
    no_others = []
    distinct = pc.unique(ids)
    for value in distinct.filter(may_be_ids(distinct, erased | {""})).to_pylist():
        one = normal_id(text_of(value) or "")
        if not one or one in erased:
            no_others.append(value)
    is_other = pc.invert(pc.is_in(ids, value_set=pa.array(no_others, ids.type)))
    return rows.filter(pc.and_(pc.is_valid(ids), is_other))


def _texts(values: "pa.Array[Any] | pa.ChunkedArray[Any]") -> Iterator[str]:
    for value in values.to_pylist():
        yield from telling_texts(value)
