"""What follows for a table from the one that its rows are of (`rows_of`): how text becomes typed,
where each row came from, whose it is, and what its columns mean.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from lakehouse.errors import DeclarationError
from lakehouse.tables import types
from lakehouse.tables.castable_rule import CastableRule, castable_from_type
from lakehouse.tables.column import Column
from lakehouse.tables.declaration import SOURCE_COLUMNS, TableDeclaration
from lakehouse.tables.rule import Rule
from lakehouse.tables.write_modes import Append

SOURCE_OF_ROW = (*SOURCE_COLUMNS, "_ingested_at")
"""The columns that say which delivered row a row is, and when it came."""
_NEVER_CAST = (types.Primitive("string"), types.Primitive("binary"))


def columns_with_source(table: TableDeclaration) -> tuple[Column, ...]:
    """Return the columns, each with what the one of its name says there, and those that keep a
    row's source.

    :raises DeclarationError: where `rows_of` is no table.
    """
    source = table.rows_of
    columns = tuple(table.columns)
    if source is None:
        return columns
    if not isinstance(source, TableDeclaration):
        raise DeclarationError(
            f"{table.name}: rows_of is {source!r}; expected the table itself, whose columns tell"
            " what is text.",
            next_step="Import the TABLE of its file.",
        )
    theirs = {column.name: column for column in source.columns}
    completed = tuple(_completed(column, _column_there(column, theirs)) for column in columns)
    if not _keeps_source(table):
        return completed
    own = {column.name for column in columns}
    missing = (name for name in SOURCE_OF_ROW if name in theirs and name not in own)
    # What a table requires that a machine fills, one that is computed from it need not.
    return (*completed, *(replace(theirs[name], required=False) for name in missing))


def _column_there(column: Column, theirs: Mapping[str, Column]) -> Column | None:
    """Return the column that one is there: that of its name, or of the newest that it had."""
    name = column.name_among(theirs)
    return theirs[name] if name else None


def _completed(column: Column, theirs: Column | None) -> Column:
    if theirs is None:
        return column
    return replace(
        column, doc=column.doc or theirs.doc, personal=column.personal or theirs.personal
    )


def _keeps_source(table: TableDeclaration) -> bool:
    """Whether each row of a table is one row that was delivered: it is appended, or the newest
    version.
    """
    if table.source_columns is not None:
        return table.source_columns
    return isinstance(table.write, Append) or table.versions is not None


def names_of_machine(table: TableDeclaration) -> frozenset[str]:
    """Return the columns of the table that the rows are of which a machine filled there, such as
    `_ingested_at`: a function hands them on, and those that its table has not are left out.
    """
    source = table.rows_of
    names = source.column_names if source else ()
    return frozenset(name for name in names if name.startswith("_"))


def people_as_there(table: TableDeclaration) -> tuple[str | None, str | None]:
    """Return the column that stands for a person, and why none does: where the table says
    neither, as is said there.
    """
    source = table.rows_of
    if source is None or table.subject is not None or table.no_subject is not None:
        return table.subject, table.no_subject
    if source.subject in {column.name for column in table.columns}:
        return source.subject, None
    is_about_people = any(column.personal for column in table.columns)
    return None, source.no_subject if is_about_people else None


def rules_with_casts(table: TableDeclaration) -> tuple[Rule, ...]:
    """Return the rules, and before them one for each column that is read from text by its
    type.
    """
    declared = tuple(rule for rule in table.rules if not _follows_from_type(rule))
    has_its_own = {rule.columns[0] for rule in declared if rule.cast}
    return (
        *(
            castable_from_type(column.name, column.type, table.wall_time_zone)
            for column in _delivered_as_text(table)
            if column.name not in has_its_own
        ),
        *declared,
    )


def _follows_from_type(rule: Rule) -> bool:
    return isinstance(rule, CastableRule) and rule.follows_from_type


def _delivered_as_text(table: TableDeclaration) -> Iterator[Column]:
    """Yield the typed columns whose values are text where the rows come from, under this name
    or one that they had.
    """
    if table.rows_of is None:
        return
    texts = {column.name for column in table.rows_of.columns if column.type == "string"}
    for column in table.columns:
        is_text_there = not texts.isdisjoint((column.name, *column.renamed_from))
        is_delivered = column.name != table.stamp
        if column.cast and is_text_there and is_delivered and _is_read_from_text(column):
            yield column


def _is_read_from_text(column: Column) -> bool:
    column_type = types.parse(column.type)
    return not types.is_nested(column_type) and column_type not in _NEVER_CAST
