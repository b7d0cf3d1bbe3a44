"""Rows that a person clears from a quarantine, since nobody will correct them."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lakehouse.errors import UsageError
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.commit.snapshot_properties import session_with
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_context import Run
from lakehouse.iceberg.read.cleared_rows import Clearing, cleared_table
from lakehouse.iceberg.read.pinned_frames import read_main
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.quoting import identifier, literal
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DISTINCTIVE_LENGTH = 6
"""Shorter values stand in a reason by chance, such as `12 rows`."""


def clear_quarantine(
    engine: Engine,
    table: IcebergTable,
    *,
    by: str,
    why: str,
    rule: str | None = None,
    file: str | None = None,
) -> int:
    """Delete rows from the quarantine of a table, and return how many; which they were, when,
    by whom and why stays in the table beside it.

    They are noted there first, so that none is nowhere: killed in between, it is done again.

    :param rule: the rule that they break; any where it is left out.
    :param file: the delivered file that they came with.
    :raises UsageError: when the reason has a value in it that identifies a person of these rows:
        it would stay where the person is erased.
    :raises TableBusy: when another process writes the quarantine for longer than a writer
        waits.
    """
    quarantine = table.quarantine
    if quarantine is None or not engine.catalog.has(quarantine.name):
        return 0
    which = _predicate(rule, file)
    cleared = cleared_table(table)
    with table_lock(engine, quarantine.name):
        rows = read_main(engine, quarantine.name).where(which)
        clearing = Clearing(datetime.now(UTC), by, why, rows.count())
        if not clearing.rows:
            return 0
        _refuse_values(rows, quarantine.masked_columns, why)
        noted = rows.selectExpr(
            "_row_key",
            "_reasons",
            *SOURCE_COLUMNS,
            f"{literal(clearing.at)} AS cleared_at",
            f"{literal(by)} AS cleared_by",
            f"{literal(why)} AS why",
        )
        write(engine, cleared, lambda: noted, run=Run())
        held, noted_in = map(engine.catalog.sql_name, (quarantine.name, cleared.name))
        is_noted = f"_row_key IN (SELECT _row_key FROM {noted_in})"
        with session_with(engine.spark, clearing.to_summary()):
            engine.sql(f"DELETE FROM {held} WHERE {which} AND {is_noted}")
    return clearing.rows


def _refuse_values(rows: "DataFrame", columns: Iterable[str], why: str) -> None:
    for column in sorted(columns):
        value = f"lower(CAST({identifier(column)} AS string))"
        is_there = f"length({value}) >= {_DISTINCTIVE_LENGTH}"
        if not rows.where(
            f"{is_there} AND contains({literal(why.lower())}, {value})"
        ).isEmpty():
            raise UsageError(
                f"The reason has a value of {column} in it, of a row that would be cleared;"
                " expected one without personal data, since it is kept.",
                next_step="Say it again with another --why, such as the number of a ticket.",
            )


def _predicate(rule: str | None, file: str | None) -> str:
    terms = ["true"]
    if rule is not None:
        terms.append(f"array_contains(_reasons, {literal(rule)})")
    if file is not None:
        terms.append(f"_source_file = {literal(file)}")
    return " AND ".join(terms)
