"""Reads ids and personal values of people from the tables of a subject; no JVM."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.arrow_ids import (
    any_of,
    is_blank,
    match_ids,
    text_of,
    texts_in,
)
from lakehouse.iceberg.erasure.find_rows import (
    PersonColumns,
    find_rows,
    id_column,
    read_rows,
    value_column,
)
from lakehouse.iceberg.metadata.scanned_batches import scanned_batches
from lakehouse.privacy.holders import Holder, Subject, subject_of
from lakehouse.tables.column import Column
from lakehouse.tables.person import Person, folded, normal_id

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import Table
    from pyiceberg.types import NestedField

_ID = ""
"""The name of the id column in rows that are read here: no column of a table has it."""
_MAX_PENDING = 4_000_000
"""Distinct values in memory before they are reported, some 100 MB."""
Owners = Mapping[tuple[int, str], Collection[str]]
"""Ids by kind of personal value (its index in `Subject.personal`) and folded value."""


@dataclass(frozen=True)
class RowOfPerson:
    """A row with an id."""

    normal_id: str = field(repr=False)
    form: str = field(repr=False)
    """The id as stored."""
    personal: Mapping[str, tuple[str, ...]] = field(repr=False)
    """Its personal values, by declared column."""


def present_fields(loaded: "Table", columns: Iterable[Column]) -> "dict[str, NestedField]":
    """Return the current fields of declared columns, by declared name. A table has a column under
    a former name until a declared change is applied, and lacks new columns.
    """
    existing = {one.name.lower(): one for one in loaded.schema().fields}
    fields = {}
    for column in columns:
        for name in (column.name, *reversed(column.renamed_from)):
            if name.lower() in existing:
                fields[column.name] = existing[name.lower()]
                break
    return fields


def find_rows_of_ids(
    engine: Engine, holder: Holder, ids: Collection[str]
) -> Iterator[RowOfPerson]:
    """Yield the rows of a table with one of some ids, in any snapshot.

    :param ids: ids from `normal_id`.
    """
    if not ids or not engine.catalog.has(holder.table):
        return
    loaded = engine.catalog.load(holder.table)
    for column, id_field in present_fields(loaded, holder.ids).items():
        is_row_column = holder.row_column is not None and column == holder.row_column.name
        personal = present_fields(loaded, holder.personal) if is_row_column else {}
        files = find_rows(loaded, PersonColumns(ids=(id_column(id_field, ids),)))
        for rows in read_rows(loaded, files, {_ID: id_field, **personal}):
            for row in rows.to_pylist():
                values = {name: tuple(texts_in(row[name])) for name in personal}
                for form in texts_in(row[_ID]):
                    if normal_id(form) in ids:
                        yield RowOfPerson(normal_id(form), form, values)


def find_owners(
    engine: Engine, subject: Subject, keys: Collection[str], *, all_snapshots: bool
) -> dict[tuple[int, str], set[str]]:
    """Return which ids have some personal values, now or in any snapshot.

    :param keys: values from `folded`.
    """
    owners: dict[tuple[int, str], set[str]] = defaultdict(set)
    for holder in subject.holders if keys else ():
        if not holder.is_by_id or not engine.catalog.has(holder.table):
            continue
        loaded = engine.catalog.load(holder.table)
        id_field, personal = _columns_of_people(loaded, holder)
        snapshot = loaded.current_snapshot()
        if id_field is None or snapshot is None:
            continue
        columns = PersonColumns(
            personal=tuple(value_column(one, keys) for one in personal.values())
        )
        snapshot_id = None if all_snapshots else snapshot.snapshot_id
        files = find_rows(loaded, columns, snapshot_id)
        for rows in read_rows(loaded, files, {_ID: id_field, **personal}):
            for name in personal:
                kind = subject.personal.index(subject.personal_names(name))
                for row in _unique(rows.select([_ID, name])).to_pylist():
                    owner = normal_id(text_of(row[_ID]) or "")
                    for key in map(folded, texts_in(row[name])):
                        if owner and key in keys:
                            owners[kind, key].add(owner)
    return owners


def find_texts(engine: Engine, subject: Subject, column: str, value: str) -> frozenset[str]:
    """Return how tables spell a personal value, in any snapshot; empty if no table has it."""
    names, key = subject.personal_names(column), folded(value)
    texts: set[str] = set()
    for holder in subject.holders:
        if not engine.catalog.has(holder.table):
            continue
        loaded = engine.catalog.load(holder.table)
        columns = [one for one in holder.personal if one.name.lower() in names]
        fields = present_fields(loaded, columns)
        matched = PersonColumns(
            personal=tuple(value_column(one, [key]) for one in fields.values())
        )
        for rows in read_rows(loaded, find_rows(loaded, matched), fields):
            for row in rows.to_pylist():
                texts.update(text for text in texts_in(row) if folded(text) == key)
    return frozenset(texts)


def shared_values(
    engine: Engine, subjects: Sequence[Subject], persons: Sequence[Person]
) -> frozenset[str]:
    """Return the personal values of some people that a person who remains has now."""
    texts: set[str] = set()
    for person in persons:
        texts.update(*person.personal.values())
    keys = frozenset(map(folded, texts))
    shared: set[str] = set()
    for subject in subjects:
        erased = _normal_ids(subjects, subject, persons)
        owners = find_owners(engine, subject, keys, all_snapshots=False)
        shared.update(key for (_, key), ids in owners.items() if ids - erased)
    return frozenset(text for text in texts if folded(text) in shared)


def remaining_values(
    engine: Engine, subjects: Sequence[Subject], persons: Sequence[Person]
) -> Iterator[str]:
    """Yield the personal values that people who remain have now; a value can be repeated.

    :param persons: the people who do not remain.
    """
    for subject in subjects:
        erased = _normal_ids(subjects, subject, persons)
        for holder in subject.holders:
            if not holder.is_by_id or not engine.catalog.has(holder.table):
                continue
            loaded = engine.catalog.load(holder.table)
            id_field, personal = _columns_of_people(loaded, holder)
            if id_field is not None:
                for one in personal.values():
                    yield from _values_of_others(loaded, id_field.name, one.name, erased)


def _columns_of_people(
    loaded: "Table", holder: Holder
) -> "tuple[NestedField | None, dict[str, NestedField]]":
    """Return the id column of a table, and its other personal columns by declared name."""
    assert holder.row_column is not None
    row_column = holder.row_column
    personal = [column for column in holder.personal if column != row_column]
    id_field = present_fields(loaded, [row_column]).get(row_column.name)
    return id_field, present_fields(loaded, personal)


def _normal_ids(
    subjects: Sequence[Subject], subject: Subject, persons: Iterable[Person]
) -> frozenset[str]:
    ids: set[str] = set()
    for person in persons:
        if subject_of(subjects, person) == subject:
            ids.update(map(normal_id, person.ids))
    return frozenset(ids)


def _values_of_others(
    loaded: "Table", id_name: str, name: str, erased: frozenset[str]
) -> Iterator[str]:
    """Yield the distinct values of a column in rows of people who remain."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pending: list[pa.Table] = []
    for batch in scanned_batches(loaded, loaded.scan(selected_fields=(id_name, name))):
        ids = batch.column(id_name)
        is_other: Any = pc.invert(any_of([is_blank(ids), match_ids(ids, erased)]))
        others = pa.table({name: batch.column(name).filter(is_other)})
        pending.append(_unique(others))
        if sum(rows.num_rows for rows in pending) >= _MAX_PENDING:
            yield from _texts(pending)
            pending = []
    yield from _texts(pending)


def _texts(tables: "Sequence[pa.Table]") -> Iterator[str]:
    import pyarrow as pa

    if tables:
        for row in _unique(pa.concat_tables(tables)).to_pylist():
            yield from texts_in(row)


def _unique(rows: "pa.Table") -> "pa.Table":
    """Return distinct rows; Arrow cannot compare nested values."""
    import pyarrow as pa

    if any(pa.types.is_nested(column.type) for column in rows.schema):
        return rows
    return rows.group_by(rows.column_names).aggregate([])
