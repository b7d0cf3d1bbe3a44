"""What one table tells of itself: its declaration and its metadata, without a JVM."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakehouse.errors import TableDamaged, TableNotFound, TableUnreadable, TypeUnsupported
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.history import History, history_of
from lakehouse.iceberg.metadata.table_state import TableState, state_of
from lakehouse.iceberg.metadata.time_series import rows_over_time
from lakehouse.iceberg.read.refused_rows import count_refused
from lakehouse.site.facts import ColumnFacts, QuarantineFacts, TableFacts

if TYPE_CHECKING:
    from lakehouse.tables.table import IcebergTable

_MOST_COUNTED_ROWS = 1_000_000
"""Rows of a quarantine up to which it is read to count them by rule."""


@dataclass(frozen=True)
class ReadTable:
    """A table's facts, as far as they need no other table, and its history where it has one."""

    facts: TableFacts
    history: History | None = None


def read_table(catalog: Catalog, name: str, table: "IcebergTable | None") -> ReadTable:
    """Return what a table is: one read of its metadata file.

    :param table: its declaration; None of one that nobody declared.
    """
    facts = _declared(table) if table else TableFacts(name, is_declared=False, is_there=True)
    try:
        loaded = catalog.load(name)
        history, state = history_of(name, loaded), state_of(name, loaded)
        facts = _with_metadata(facts, history, state)
    except TableNotFound:
        return ReadTable(replace(facts, is_there=False))
    except TableDamaged as error:
        # The pages of the others are wanted all the same.
        return ReadTable(replace(facts, is_there=True, damage=str(error)))
    except TypeUnsupported as error:
        return ReadTable(replace(facts, is_there=True, unsupported=str(error)))
    return ReadTable(facts, history)


def read_quarantine(catalog: Catalog, table: "IcebergTable") -> QuarantineFacts | None:
    """Count the rows of a table that stand in its quarantine; None where it has none, or one
    that cannot be read.
    """
    if table.quarantine is None:
        return None
    name = table.quarantine.name
    try:
        loaded = catalog.load(name)
        history = history_of(name, loaded)
        rows = history.main.rows if history.main else 0
        trend = rows_over_time(history)
        if not rows or rows > _MOST_COUNTED_ROWS:
            return QuarantineFacts(name, rows, trend=trend)
        counts = count_refused(catalog, table)
    except (TableNotFound, TableUnreadable):
        # Where it cannot be read, its own page says so.
        return QuarantineFacts(name)
    by_rule = {str(rule.name): rule.rows for rule in counts.by_rule}
    return QuarantineFacts(name, rows, by_rule, counts.last_at, trend)


def _declared(table: "IcebergTable") -> TableFacts:
    return TableFacts(
        table.name,
        is_declared=True,
        is_there=False,
        comment=table.comment,
        owner=table.owner or "",
        tags=dict(sorted(table.tags.items())),
        columns=_declared_columns(table),
        write_mode=type(table.write).__name__,
        partitioning=tuple(table.partitioning),
        no_subject=table.no_subject or "",
    )


def _declared_columns(table: "IcebergTable") -> tuple[ColumnFacts, ...]:
    columns = []
    for column in table.columns:
        personal = "identifies a person" if column.personal else ""
        if column.name == table.subject:
            personal = "stands for a person"
        columns.append(
            ColumnFacts(column.name, column.type, column.doc, personal, column.required)
        )
    return tuple(columns)


def _with_metadata(facts: TableFacts, history: History, state: TableState) -> TableFacts:
    main = history.main
    files = ("total-data-files", "total-delete-files")
    return replace(
        facts,
        is_there=True,
        comment=facts.comment or state.comment,
        columns=facts.columns or _found_columns(state),
        partitioning=facts.partitioning or tuple(map(str, state.partitioning)),
        location=state.location,
        format_version=state.format_version,
        rows=main.rows if main else 0,
        size_bytes=main.count("total-files-size") if main else 0,
        files=sum(map(main.count, files)) if main else 0,
        snapshots=len(history.snapshots),
        written_at=history.written_at,
    )


def _found_columns(state: TableState) -> tuple[ColumnFacts, ...]:
    return tuple(
        ColumnFacts(column.name, str(column.type), column.doc, is_required=column.required)
        for column in state.columns
    )
