"""Where personal values and ids stand, in every table that holds people of a subject: whose rows
have a value, how rows spell it that no id tells, and in what forms a column has an id.

Each table is read once for a question, whatever number of its columns may hold the answer.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.erasure.arrow_ids import text_of
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.privacy.compared_values import (
    compared,
    may_be_ids,
    may_be_values,
    telling_texts,
)
from lakehouse.privacy.holders import Holder, Subject
from lakehouse.privacy.matching_rows import matching_rows
from lakehouse.privacy.table_reading import present_names, texts_in
from lakehouse.tables.person import normal_id

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import Table


@dataclass(frozen=True)
class Spelling:
    """How a row that no id tells spells a person's value."""

    id: str = field(repr=False)
    column: str
    text: str = field(repr=False)


@dataclass(frozen=True)
class RowOfId:
    """A row that has an id."""

    id: str = field(repr=False)
    """As `normal_id` returns it."""
    form: str = field(repr=False)
    personal: Mapping[str, tuple[str, ...]] = field(repr=False)
    """What stands beside it, by declared column."""


def find_owners(
    engine: Engine,
    subject: Subject,
    keys: frozenset[str],
    *,
    all_snapshots: bool,
    without: Collection[str] = (),
) -> dict[tuple[int, str], set[str]]:
    """Return which ids have some personal values, by what the value tells (its place in
    `Subject.personal`) and the value as it is compared.

    :param without: the paths of files that are known to have none.
    """
    owners: dict[tuple[int, str], set[str]] = defaultdict(set)
    matches = partial(may_be_values, keys=keys)
    for holder in subject.holders if keys else ():
        if not holder.is_by_id or not engine.catalog.has(holder.table):
            continue
        loaded = engine.catalog.load(holder.table)
        key = _id_column(loaded, holder)
        columns = _personal_columns(loaded, subject, holder)
        if key is None or not columns:
            continue
        for _, rows in matching_rows(
            loaded,
            [name for name, _ in columns],
            matches,
            beside=(key,),
            all_snapshots=all_snapshots,
            without=without,
        ):
            for name, number in columns:
                for owner, text in _pairs(rows, key, name, keys):
                    owners[number, compared(text)].add(owner)
    return owners


def _personal_columns(
    loaded: "Table", subject: Subject, holder: Holder
) -> list[tuple[str, int]]:
    """Return what a table calls its personal columns, but one that tells whose a row is, each
    with what the value tells.
    """
    columns = []
    for column, name in present_names(loaded, holder.personal).items():
        if holder.row_column is None or column != holder.row_column.name:
            number = subject.personal.index(subject.personal_names(column))
            columns.append((name, number))
    return columns


def _pairs(
    rows: "pa.Table", key: str, name: str, keys: frozenset[str]
) -> Iterator[tuple[str, str]]:
    """Yield the ids and the values of the rows that have an id, and some values in a column."""
    for row in _narrowed(rows, name, key, keys):
        owner = normal_id(text_of(row[key]) or "")
        for text in telling_texts(row[name]) if owner else ():
            if compared(text) in keys:
                yield owner, text


def find_spellings(
    engine: Engine, subject: Subject, personal: Mapping[str, Mapping[str, set[str]]]
) -> tuple[list[Spelling], set[str]]:
    """Return how rows that no id tells spell what is a person's, in any snapshot; and the paths
    of the files that have none of the values, in whatever rows.
    """
    wanted: dict[tuple[int, str], set[str]] = defaultdict(set)
    for one, columns in personal.items():
        for column, texts in columns.items():
            number = subject.personal.index(subject.personal_names(column))
            for text in texts:
                wanted[number, compared(text)].add(one)
    keys = frozenset(key for _, key in wanted)
    spellings: list[Spelling] = []
    without: set[str] = set()
    for holder in subject.holders if keys else ():
        if not engine.catalog.has(holder.table):
            continue
        loaded = engine.catalog.load(holder.table)
        spelled = _texts_without_id(loaded, holder, keys, without)
        for column, texts in spelled.items():
            number = subject.personal.index(subject.personal_names(column))
            for text in texts:
                for one in sorted(wanted.get((number, compared(text)), ())):
                    spellings.append(Spelling(one, column.lower(), text))
    return spellings, without


def _id_column(loaded: "Table", holder: Holder) -> str | None:
    """Return what a table calls the column that tells whose a row is, where that is an id."""
    if not holder.is_by_id or holder.row_column is None:
        return None
    return present_names(loaded, [holder.row_column]).get(holder.row_column.name)


def _texts_without_id(
    loaded: "Table", holder: Holder, keys: frozenset[str], without: set[str]
) -> dict[str, set[str]]:
    """Return the texts that are some values, of rows that have no id, by declared column; add
    the paths of the files that have none in any row.
    """
    key = _id_column(loaded, holder)
    names = present_names(loaded, holder.personal)
    if not names:
        return {}
    matches = partial(may_be_values, keys=keys)
    beside = () if key is None else (key,)
    texts: dict[str, set[str]] = {column: set() for column in names}
    for path, rows in matching_rows(
        loaded, names.values(), matches, beside=beside, all_snapshots=True
    ):
        if not rows.num_rows:
            without.add(path)
        for column, name in names.items():
            for row in _narrowed(rows, name, key, keys):
                if key is None or not (text_of(row[key]) or "").strip():
                    there = telling_texts(row[name])
                    texts[column].update(text for text in there if compared(text) in keys)
    return texts


def _narrowed(
    rows: "pa.Table", name: str, key: str | None, keys: frozenset[str]
) -> list[dict[str, Any]]:
    """Return a column of the rows that may have some values in it, and their ids."""
    needed = [name] if key in (None, name) else [name, key]
    return rows.select(needed).filter(may_be_values(rows.column(name), keys)).to_pylist()


def find_ids(
    loaded: "Table", name: str, ids: Iterable[str], personal: Mapping[str, str]
) -> Iterator[RowOfId]:
    """Yield the rows that have one of some ids in a column, in any snapshot.

    :param ids: as `normal_id` returns them.
    :param personal: what the table calls the columns that are told too, by declared name.
    """
    wanted = frozenset(ids)
    matches = partial(may_be_ids, wanted=wanted)
    for _, rows in matching_rows(
        loaded, (name,), matches, beside=personal.values(), all_snapshots=True
    ):
        for row in rows.to_pylist():
            forms = [form for form in texts_in(row[name]) if normal_id(form) in wanted]
            if not forms:
                continue
            texts = {column: tuple(telling_texts(row[one])) for column, one in personal.items()}
            for form in forms:
                yield RowOfId(normal_id(form), form, texts)
