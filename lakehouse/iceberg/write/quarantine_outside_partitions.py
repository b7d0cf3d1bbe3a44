"""Quarantine of source rows that are in no partition and therefore in no run."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.frame_joins import union_all
from lakehouse.iceberg.metadata.write_context import Run
from lakehouse.iceberg.metadata.write_result import (
    Outcome,
    Published,
    Quarantined,
    RuleResult,
    by_table,
)
from lakehouse.iceberg.read.cleared_rows import without_cleared
from lakehouse.iceberg.read.pinned_frames import read, read_main
from lakehouse.iceberg.read.rows_outside_partitions import (
    HAS_PARTITION,
    IS_LEFT_OUT,
    OutsidePartitions,
    has_partition,
)
from lakehouse.iceberg.rules.failing_row_samples import SAMPLE_ROWS, sample_of
from lakehouse.iceberg.write.prepared_frame import (
    DELETED,
    depends_on_time_zone,
    text_sql,
    written_columns,
)
from lakehouse.iceberg.write.refused_row_keys import each_once, row_key_sql
from lakehouse.iceberg.write.write_attempt import Attempt
from lakehouse.tables.quoting import identifier, literal
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def quarantine_left_out(attempt: Attempt) -> Quarantined | None:
    """Update the quarantine of rows in no partition: add new ones, remove those that are no
    longer there.

    None if an earlier run has processed the same rows, or if the table has no quarantine; Spark
    is not used then.
    """
    target, sources = attempt.table.quarantine, attempt.fence.outside
    if target is None or all(outside.is_settled for outside in sources):
        return None

    def changes() -> "DataFrame":
        left_out = each_once(union_all(_refused(attempt, outside) for outside in sources))
        left_out = without_cleared(attempt.engine, attempt.table, left_out)
        existing = read_main(attempt.engine, target.name).where(IS_LEFT_OUT)
        obsolete = existing.join(left_out.select("_row_key"), "_row_key", "left_anti")
        names = [identifier(name) for name in written_columns(target)]
        return left_out.selectExpr(*names, f"false AS {DELETED}").unionByName(
            obsolete.selectExpr(*names, f"true AS {DELETED}")
        )

    outcome = attempt.driver.write_quarantine(
        attempt.engine, target, changes, run=Run(attempt.run.run_id)
    )
    new_rows = outcome.inserted_rows if isinstance(outcome, Published) else 0
    rows = sum(outside.rows for outside in sources)
    return Quarantined(target.name, rows, new_rows or 0, outcome.snapshot_id, rows, rows)


def evaluate_left_out(attempt: Attempt) -> list[RuleResult]:
    """Return the result of the rule that each row is in a partition; empty if no input is read
    by partitions.

    Rows that an earlier run processed are counted by metadata, and not sampled again.
    """
    sources = attempt.fence.outside
    if not sources:
        return []
    names = {outside.source.table for outside in sources}
    pins = by_table(attempt.fence.pins.values())
    total = sum(pins[name].rows or 0 for name in names)
    unsettled = [
        _rows(attempt, outside)
        for outside in sources
        if outside.rows and not outside.is_settled
    ]
    failed_rows = sum(outside.rows for outside in sources if outside.is_settled) + sum(
        rows.count() for rows in unsettled
    )
    sample = [
        row for rows in unsettled for row in sample_of(attempt.engine, attempt.table, rows)
    ]
    return [
        RuleResult(
            has_partition(attempt.table),
            failed_rows,
            max(total, failed_rows),
            tuple(sample[:SAMPLE_ROWS]),
        )
    ]


def with_left_out(
    outcome: Outcome, evaluated: Sequence[RuleResult], refused: Quarantined | None
) -> Outcome:
    """Return an outcome with the rows in no partition added to its rejected rows."""
    both = outcome.quarantined
    if refused and both:
        rows, new_rows = refused.rows + both.rows, refused.new_rows + both.new_rows
        outside_rows = refused.outside_rows + both.outside_rows
        both = replace(both, rows=rows, new_rows=new_rows, outside_rows=outside_rows)
        both = replace(both, left_out_rows=refused.rows)
    return replace(outcome, results=(*outcome.results, *evaluated), quarantined=both or refused)


def _rows(attempt: Attempt, outside: OutsidePartitions) -> "DataFrame":
    """Return the partition column and the source columns of the rows in no partition."""
    rows = read(attempt.engine, outside.source, outside.every.outside(outside.column))
    by = attempt.table.overwritten_by or outside.column
    sources = [name for name in SOURCE_COLUMNS if name in rows.columns]
    return rows.selectExpr(
        f"{identifier(outside.column)} AS {identifier(by)}", *map(identifier, sources)
    )


def _refused(attempt: Attempt, outside: OutsidePartitions) -> "DataFrame":
    """Return the rows of a source in no partition, in the form of the quarantine."""
    rows = read(attempt.engine, outside.source, outside.where)
    return rows_without_partition(attempt.table, rows, outside.column)


def rows_without_partition(table: IcebergTable, rows: "DataFrame", column: str) -> "DataFrame":
    """Return source rows without a partition in the form of a table's quarantine: columns as
    text, by their current or former names.

    :param column: the source's partition column.
    """
    target, by = table.quarantine, table.overwritten_by
    assert target is not None
    has_parts = {
        name: kind.startswith(("struct", "array", "map")) for name, kind in rows.dtypes
    }
    texts = [text_sql(name, has_parts=nested) for name, nested in has_parts.items()]
    sources = {by: column} | _by_former_names(target, rows.columns)
    sources |= {name: name for name in rows.columns}
    own = {
        "_row_key": row_key_sql(rows.columns, texts),
        "_reasons": f"array({literal(HAS_PARTITION)})",
        **{
            name: f"CAST({identifier(name)} AS {target.column(name).type})"
            for name in SOURCE_COLUMNS
            if name in has_parts
        },
    }

    def value_sql(name: str) -> str:
        if name in own:
            return own[name]
        source = sources.get(name)
        if source is None:
            return f"CAST(NULL AS {target.column(name).type})"
        return text_sql(
            source, has_parts=has_parts[source], has_offset=depends_on_time_zone(table, name)
        )

    terms = {name: value_sql(name) for name in written_columns(target)}
    return rows.selectExpr(*(f"{sql} AS {identifier(name)}" for name, sql in terms.items()))


def _by_former_names(table: IcebergTable, present: Collection[str]) -> dict[str, str]:
    """Return, by column of a table, the source column that it was renamed from."""
    known = {}
    for column in table.columns:
        for name in column.renamed_from:
            if name in present:
                known[column.name] = name
    return known
