"""Where personal values and ids stand, in every table that holds people of a subject: whose rows
have a value, how rows spell it that no id tells, and in what forms a column has an id.

Each table is read once for a question, whatever number of its columns may hold the answer.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.privacy.holders import Holder, Subject
from lakehouse.privacy.table_reading import (
    among,
    is_integer,
    present_names,
    read_all_snapshots,
    read_now,
    text_of,
    texts_in,
)
from lakehouse.tables.person import normal_id

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table


def find_owners(
    engine: Engine, subject: Subject, keys: frozenset[str], *, all_snapshots: bool
) -> dict[tuple[int, str], set[str]]:
    """Return which ids have some personal values, by what the value tells (its place in
    `Subject.personal`) and the value as it is compared.
    """
    owners: dict[tuple[int, str], set[str]] = defaultdict(set)
    read = read_all_snapshots if all_snapshots else read_now
    for holder in subject.holders if keys else ():
        if not holder.is_by_id or not engine.catalog.has(holder.table):
            continue
        loaded = engine.catalog.load(holder.table)
        key = _id_column(loaded, holder)
        columns = _personal_columns(loaded, subject, holder)
        if key is None or not columns:
            continue
        names = dict.fromkeys((key, *(name for name, _ in columns)))
        for batch in read(loaded, tuple(names)):
            for name, number in columns:
                for owner, text in _pairs(batch, key, name, keys):
                    if owner:
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
    batch: "pa.RecordBatch", key: str, name: str, keys: frozenset[str]
) -> Iterator[tuple[str, str]]:
    """Yield the ids and the values of the rows of a batch that have some values."""
    needed = list(dict.fromkeys((key, name)))
    for row in _narrowed(batch.select(needed), name, keys).to_pylist():
        for text in telling_texts(row[name]):
            if compared(text) in keys:
                yield normal_id(text_of(row[key]) or ""), text


def find_spellings(
    engine: Engine, subject: Subject, personal: Mapping[str, Mapping[str, set[str]]]
) -> list[tuple[str, str, str]]:
    """Return how rows that no id tells spell what is a person's: id, column and text."""
    wanted: dict[tuple[int, str], set[str]] = defaultdict(set)
    for one, columns in personal.items():
        for column, texts in columns.items():
            number = subject.personal.index(subject.personal_names(column))
            for text in texts:
                wanted[number, compared(text)].add(one)
    keys = frozenset(key for _, key in wanted)
    spellings = []
    for holder in subject.holders if keys else ():
        if not engine.catalog.has(holder.table):
            continue
        loaded = engine.catalog.load(holder.table)
        key = _id_column(loaded, holder)
        names = present_names(loaded, holder.personal)
        spelled = _texts_without_id(loaded, names.values(), key, keys)
        for column, name in names.items():
            number = subject.personal.index(subject.personal_names(column))
            for text in spelled[name]:
                for one in sorted(wanted.get((number, compared(text)), ())):
                    spellings.append((one, column.lower(), text))
    return spellings


def _id_column(loaded: "Table", holder: Holder) -> str | None:
    """Return what a table calls the column that tells whose a row is, where that is an id."""
    if not holder.is_by_id or holder.row_column is None:
        return None
    return present_names(loaded, [holder.row_column]).get(holder.row_column.name)


def _texts_without_id(
    loaded: "Table", names: Iterable[str], key: str | None, keys: frozenset[str]
) -> dict[str, set[str]]:
    """Return the texts of some columns that are some values, of rows that have no id."""
    texts: dict[str, set[str]] = {name: set() for name in names}
    read = tuple(dict.fromkeys((*texts, *([key] if key else ()))))
    for batch in read_all_snapshots(loaded, read) if texts else ():
        for name in texts:
            needed = [name, key] if key and key != name else [name]
            for row in _narrowed(batch.select(needed), name, keys).to_pylist():
                if key is None or not (text_of(row[key]) or "").strip():
                    found = telling_texts(row[name])
                    texts[name].update(text for text in found if compared(text) in keys)
    return texts


def find_forms(loaded: "Table", name: str, ids: Iterable[str]) -> dict[str, set[str]]:
    """Return the forms that some ids have in a column, in any snapshot; without those that it
    does not have.
    """
    wanted = frozenset(ids)
    condition: BooleanExpression | None = None
    if is_integer(loaded, name):
        condition = among(loaded, name, wanted)
    forms: dict[str, set[str]] = defaultdict(set)
    for batch in read_all_snapshots(loaded, (name,), condition):
        for value in _possible_ids(batch, name, wanted).to_pylist():
            text = text_of(value)
            if text is not None and normal_id(text) in wanted:
                forms[normal_id(text)].add(text)
    return forms


def _possible_ids(
    batch: "pa.RecordBatch", name: str, wanted: frozenset[str]
) -> "pa.Array[Any]":
    """Return the values of a column, each once, without text that cannot be one of some ids."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = pc.unique(batch.column(name))
    if not _is_text(values.type):
        return values
    # What is left of an id without what its forms may have in front.
    bare = pc.utf8_ltrim(pc.utf8_trim_whitespace(values), characters="+0")
    known = pa.array(sorted(one.lstrip("+0") for one in wanted), bare.type)
    return values.filter(pc.is_in(bare, value_set=known))


def _narrowed(batch: "pa.RecordBatch", name: str, keys: frozenset[str]) -> "pa.RecordBatch":
    """Return the rows of a batch whose text in a column may be one of some values; all rows of
    a column of another type.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    values = batch.column(name)
    if not _is_text(values.type):
        return batch
    compared = pc.utf8_lower(pc.utf8_trim_whitespace(values))
    return batch.filter(pc.is_in(compared, value_set=pa.array(sorted(keys), compared.type)))


def _is_text(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def telling_texts(value: Any) -> Iterator[str]:
    """Yield the texts of a personal value; blanks tell of nobody."""
    for text in texts_in(value):
        if text.strip():
            yield text


def compared(text: str) -> str:
    """Return a personal value as it is compared: an address is the same in other capitals."""
    return text.strip().lower()
