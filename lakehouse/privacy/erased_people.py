"""People who are erased, as each part of an erasure has to be told of them; no text of it leaves
the process.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.holders import Holder, Subject
from lakehouse.privacy.table_reading import present_names, read_now, text_of, texts_in
from lakehouse.tables.person import Person, normal_id

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import Table


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
    keys = {_key(text) for text in texts}
    remaining = {_key(value) for value in remaining_values(erasable, persons)} & keys
    return frozenset(text for text in texts if _key(text) in remaining)


def remaining_values(erasable: Erasable, persons: Sequence[Person]) -> Iterator[str]:
    """Yield the personal values that people who remain have now, by the tables that tell whose
    they are; values that stand in several files more than once.

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
    for batch in read_now(loaded, (key, *columns)):
        others = _rows_of_others(batch, key, erased)
        for name in columns:
            yield from _texts(others.column(name))


def _rows_of_others(
    batch: "pa.RecordBatch", key: str, erased: frozenset[str]
) -> "pa.RecordBatch":
    """Return the rows that an id tells to be of somebody who is not erased."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = pc.unique(batch.column(key))
    others = []
    for value in ids.to_pylist():
        one = normal_id(text_of(value) or "")
        if one and one not in erased:
            others.append(value)
    return batch.filter(pc.is_in(batch.column(key), value_set=pa.array(others, ids.type)))


def _texts(values: "pa.Array[Any]") -> Iterator[str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    distinct = values if pa.types.is_nested(values.type) else pc.unique(values)
    for value in distinct.to_pylist():
        for text in texts_in(value):
            if text.strip():
                yield text


def _key(text: str) -> str:
    """Return a personal value as it is compared, whatever its capitals."""
    return text.strip().lower()
