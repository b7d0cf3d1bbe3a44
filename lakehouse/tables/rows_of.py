"""What a table inherits from its source table: casts, source columns, people and docs."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from lakehouse.errors import DeclarationError
from lakehouse.tables import types
from lakehouse.tables.column import Column
from lakehouse.tables.declaration import SOURCE_COLUMNS, TableDeclaration
from lakehouse.tables.rule import CastableRule, Rule, castable_from_type
from lakehouse.tables.write_modes import Append

SOURCE_OF_ROW = (*SOURCE_COLUMNS, "_ingested_at")
"""The columns that identify the delivered row and its time of arrival."""
_NEVER_CAST = (types.Primitive("string"), types.Primitive("binary"))


def columns_with_source(table: TableDeclaration) -> tuple[Column, ...]:
    """Return the columns, completed from the source table, and the source columns."""
    source = table.rows_of
    columns = tuple(table.columns)
    if source is None:
        return columns
    if not isinstance(source, TableDeclaration):
        raise DeclarationError(
            f"{table.name}: rows_of is {source!r}; expected the declaration of a table.",
            next_step="Import the TABLE of its file.",
        )
    inherited = {column.name: column for column in source.columns}
    completed = tuple(_completed(column, inherited) for column in columns)
    if not _keeps_source(table):
        return completed
    own = {column.name for column in columns}
    missing = (name for name in SOURCE_OF_ROW if name in inherited and name not in own)
    # A required column that is filled automatically is optional in a derived table.
    return (*completed, *(replace(inherited[name], required=False) for name in missing))


def _completed(column: Column, inherited: Mapping[str, Column]) -> Column:
    """Complete a column by the source column of the same or the newest former name."""
    name = column.matching_name(inherited)
    if name is None:
        return column
    source = inherited[name]
    is_personal = column.personal or source.personal
    return replace(column, doc=column.doc or source.doc, personal=is_personal)


def _keeps_source(table: TableDeclaration) -> bool:
    """Return whether each row of a table is one delivered row."""
    if table.source_columns is not None:
        return table.source_columns
    return isinstance(table.write, Append) or table.versions is not None


def names_of_machine(table: TableDeclaration) -> frozenset[str]:
    """Return the source table's automatically filled columns."""
    source = table.rows_of
    names = source.column_names if source else ()
    return frozenset(name for name in names if name.startswith("_"))


def people_as_there(table: TableDeclaration) -> tuple[str | None, str | None]:
    """Return `subject` and `no_subject`, inherited if the table declares neither."""
    source = table.rows_of
    if source is None or table.subject is not None or table.no_subject is not None:
        return table.subject, table.no_subject
    if source.subject in {column.name for column in table.columns}:
        return source.subject, None
    is_about_people = any(column.personal for column in table.columns)
    return None, source.no_subject if is_about_people else None


def rules_with_casts(table: TableDeclaration) -> tuple[Rule, ...]:
    """Return the rules, preceded by a cast rule for each column that is cast by its type."""
    declared = tuple(
        rule
        for rule in table.rules
        if not (isinstance(rule, CastableRule) and rule.follows_from_type)
    )
    has_its_own = {rule.columns[0] for rule in declared if rule.cast}
    casts = (
        castable_from_type(column.name, column.type, table.wall_time_zone)
        for column in _delivered_as_text(table)
        if column.name not in has_its_own
    )
    return (*casts, *declared)


def _delivered_as_text(table: TableDeclaration) -> Iterator[Column]:
    """Yield the typed columns that are text in the source table, also under a former name."""
    if table.rows_of is None:
        return
    texts = {column.name for column in table.rows_of.columns if column.type == "string"}
    for column in table.columns:
        is_text_there = not texts.isdisjoint((column.name, *column.renamed_from))
        is_delivered = column.name != table.stamp
        column_type = types.parse(column.type)
        is_plain = not types.is_nested(column_type) and column_type not in _NEVER_CAST
        if column.cast and is_text_there and is_delivered and is_plain:
            yield column
