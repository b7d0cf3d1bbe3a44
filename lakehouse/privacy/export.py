"""All rows that tables have of people now, as who asks for access is given them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakehouse.errors import TypeUnsupported
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.privacy.holders import Holder, Subject
from lakehouse.privacy.identity import Identity
from lakehouse.privacy.table_reading import (
    is_searchable,
    present_names,
    read_now,
    row_condition,
    text_of,
    texts_in,
)
from lakehouse.tables.people import names_of
from lakehouse.tables.person import Person, normal_id

if TYPE_CHECKING:
    from pyiceberg.table import Table


@dataclass(frozen=True)
class HeldRow:
    """A row that a table has of a person."""

    table: str
    row: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Export:
    """What was found, and where it was looked for."""

    rows: tuple[HeldRow, ...] = field(repr=False)
    tables: tuple[str, ...]
    """The tables that were looked at."""
    shared_rows: int
    """Rows left out: only a value is in them that somebody else has as well."""
    unsearched: Mapping[str, tuple[str, ...]]
    """Tables that nobody declared, and their columns with names of those that are about people:
    whether they are cannot be told.
    """
    unsupported: Mapping[str, str]
    """Tables that nobody declared and only Spark reads, and why."""


def export_people(
    engine: Engine,
    subjects: Sequence[Subject],
    identities: Sequence[Identity],
    declared: Iterable[str],
) -> Export:
    """Return the rows that readers see of some people, each row once; no JVM.

    :param declared: names of the tables that are declared.
    """
    holders = {
        holder.table: None
        for identity in identities
        for holder in identity.subject.holders
        if engine.catalog.has(holder.table)
    }
    rows: list[HeldRow] = []
    shared_rows = 0
    for table in sorted(holders):
        loaded = engine.catalog.load(table)
        finders = list(_finders(loaded, table, identities))
        for row in _candidates(loaded, finders):
            matches = {finder.match(row) for finder in finders}
            if "theirs" in matches:
                rows.append(HeldRow(table, row))
            elif "shared" in matches:
                shared_rows += 1
    columns, unsupported = undeclared_columns(engine, subjects, declared)
    return Export(tuple(rows), tuple(sorted(holders)), shared_rows, columns, unsupported)


def undeclared_columns(
    engine: Engine, subjects: Sequence[Subject], declared: Iterable[str]
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return, by table that nobody declared, its columns that are called as those about people
    are, and the tables whose columns cannot be told, with why; in Glue, which has the databases of
    a whole account, of tables beside declared ones.
    """
    names, names_declared = set[str](), set(declared)
    for subject in subjects:
        names |= subject.names.union(*subject.personal)
    columns, unsupported = {}, {}
    for table in sorted(set(engine.catalog.tables(names_declared)) - names_declared):
        try:
            fields = engine.catalog.load(table).schema().fields
        except TypeUnsupported as error:
            unsupported[table] = str(error)
            continue
        alike = tuple(field.name for field in fields if field.name.lower() in names)
        if alike:
            columns[table] = alike
    return columns, unsupported


@dataclass(frozen=True)
class _Finder:
    """How the rows of one person are told in one table."""

    person: Person
    shared: Mapping[str, frozenset[str]]
    ids: tuple[str, ...]
    personal: tuple[tuple[str, str], ...]
    """What the table calls the columns, each with the name in `Person.personal`."""
    row_column: str | None

    @classmethod
    def of(cls, loaded: "Table", holder: Holder, identity: Identity) -> "_Finder":
        """Return that of a table as it is now."""
        names = present_names(loaded, holder.columns)
        personal = []
        for column in holder.personal:
            known = sorted(names_of(column) & identity.person.personal.keys())
            if column.name not in names or not known:
                continue
            # Of a table of people it is a last resort, for rows without an id.
            if not holder.is_by_id or is_searchable(loaded, names[column.name]):
                personal.append((names[column.name], known[0]))
        row_column = None
        if holder.row_column is not None and holder.is_by_id:
            row_column = names.get(holder.row_column.name)
        return cls(
            identity.person,
            identity.shared,
            tuple(names[column.name] for column in holder.ids if column.name in names),
            tuple(personal),
            row_column,
        )

    def match(self, row: Mapping[str, Any]) -> str:
        """Return whether a row is `theirs`, has only a value that is `shared`, or neither."""
        ids = {normal_id(one) for one in self.person.ids}
        if any(normal_id(text) in ids for name in self.ids for text in texts_in(row[name])):
            return "theirs"
        owner = (text_of(row[self.row_column]) or "").strip() if self.row_column else ""
        if owner:
            return ""
        matches = set()
        for name, known_as in self.personal:
            for text in texts_in(row[name]):
                if text in self.person.personal[known_as]:
                    matches.add(text in self.shared.get(known_as, ()))
        return "theirs" if False in matches else "shared" if matches else ""

    def texts(self) -> dict[str, frozenset[str]]:
        """Return the values that tell a row, by what the table calls the column."""
        texts = dict.fromkeys(self.ids, self.person.ids)
        for name, known_as in self.personal:
            texts[name] = texts.get(name, frozenset()) | self.person.personal[known_as]
        return texts


def _finders(loaded: "Table", table: str, identities: Iterable[Identity]) -> Iterator[_Finder]:
    for identity in identities:
        for holder in identity.subject.holders:
            if holder.table == table:
                yield _Finder.of(loaded, holder, identity)


def _candidates(loaded: "Table", finders: Sequence[_Finder]) -> Iterator[dict[str, Any]]:
    texts: dict[str, set[str]] = {}
    for finder in finders:
        for name, some in finder.texts().items():
            texts.setdefault(name, set()).update(some)
    names = [field.name for field in loaded.schema().fields]
    for batch in read_now(loaded, names, row_condition(loaded, texts)):
        yield from batch.to_pylist()
