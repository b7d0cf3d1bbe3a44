"""Clear rows from a quarantine that will not be corrected."""

from datetime import UTC, datetime

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.commit.snapshot_properties import session_with
from lakehouse.iceberg.read.cleared_rows import Clearing, cleared_table
from lakehouse.iceberg.read.pinned_frames import read_main
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.quoting import literal
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable


def clear_quarantine(
    engine: Engine,
    table: IcebergTable,
    *,
    by: str,
    why: str,
    rule: str | None = None,
    file: str | None = None,
) -> int:
    """Delete rows from a table's quarantine, and return their number; their keys, the time, the
    user and the reason remain in the table of cleared rows, also after an erasure.

    They are recorded there first, so that a killed command can be repeated.

    :param rule: only rows that break this rule.
    :param file: only rows of this delivered file.
    :raises TableBusy: if another process holds the lock of the quarantine for too long.
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
        cleared_rows = rows.selectExpr(
            "_row_key",
            "_reasons",
            *SOURCE_COLUMNS,
            f"{literal(clearing.at)} AS cleared_at",
            f"{literal(by)} AS cleared_by",
            f"{literal(why)} AS why",
        )
        write(engine, cleared, lambda: cleared_rows, run=Run())
        quarantine_name, cleared_name = map(
            engine.catalog.sql_name, (quarantine.name, cleared.name)
        )
        is_cleared = f"_row_key IN (SELECT _row_key FROM {cleared_name})"
        with session_with(engine.spark, clearing.to_summary()):
            engine.sql(f"DELETE FROM {quarantine_name} WHERE {which} AND {is_cleared}")
    return clearing.rows


def _predicate(rule: str | None, file: str | None) -> str:
    terms = ["true"]
    if rule is not None:
        terms.append(f"array_contains(_reasons, {literal(rule)})")
    if file is not None:
        terms.append(f"_source_file = {literal(file)}")
    return " AND ".join(terms)
