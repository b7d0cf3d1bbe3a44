"""What no run reads, kept where people find it: in the table's quarantine, under a reason of
its own.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.frame_joins import together
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
    tells_moments,
    text_sql,
    written_columns,
)
from lakehouse.iceberg.write.quarantine import Write
from lakehouse.iceberg.write.refused_row_keys import OF_SOURCE, each_once, row_key_sql
from lakehouse.iceberg.write.write_attempt import Attempt
from lakehouse.tables.quoting import identifier, literal
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def quarantine_left_out(
    attempt: Attempt, sources: Sequence[OutsidePartitions], write: Write
) -> Quarantined | None:
    """Bring the quarantine to what is left out now: rows that came are put in, and those that
    are no more taken out.

    None where nothing changed since a run has done so, or the table has no quarantine; no Spark
    is asked then.
    """
    target = attempt.table.quarantine
    if target is None or all(outside.is_settled for outside in sources):
        return None

    def changes() -> "DataFrame":
        left_out = each_once(together(_refused(attempt, outside) for outside in sources))
        left_out = without_cleared(attempt.engine, attempt.table, left_out, OF_SOURCE)
        existing = read_main(attempt.engine, target.name).where(IS_LEFT_OUT)
        gone = existing.join(left_out.select("_row_key"), "_row_key", "left_anti")
        names = [identifier(name) for name in written_columns(target)]
        return left_out.selectExpr(*names, f"false AS {DELETED}").unionByName(
            gone.selectExpr(*names, f"true AS {DELETED}")
        )

    outcome = write(attempt.engine, target, changes, run=Run(attempt.run.run_id))
    new_rows = outcome.inserted_rows if isinstance(outcome, Published) else 0
    rows = sum(outside.rows for outside in sources)
    return Quarantined(target.name, rows, new_rows or 0, outcome.snapshot_id, rows, rows)


def evaluate_left_out(
    attempt: Attempt, sources: Sequence[OutsidePartitions]
) -> list[RuleResult]:
    """Return what the rule found that each row belongs to a partition; none where no input is
    read by partitions.

    Rows that a run has seen to already are counted by metadata, and not shown once more.
    """
    if not sources:
        return []
    names = {outside.source.table for outside in sources}
    pins = by_table(attempt.pins.values())
    total = sum(pins[name].rows or 0 for name in names)
    looked_at = [
        _rows(attempt, outside)
        for outside in sources
        if outside.rows and not outside.is_settled
    ]
    counted = sum(outside.rows for outside in sources if outside.is_settled) + sum(
        rows.count() for rows in looked_at
    )
    sample = [
        row for rows in looked_at for row in sample_of(attempt.engine, attempt.table, rows)
    ]
    return [
        RuleResult(
            has_partition(attempt.table),
            counted,
            max(total, counted),
            tuple(sample[:SAMPLE_ROWS]),
        )
    ]


def with_left_out(
    outcome: Outcome, evaluated: Sequence[RuleResult], refused: Quarantined | None
) -> Outcome:
    """Return an outcome with what was left out, and with the rows that its rules refused."""
    both = outcome.quarantined
    if refused and both:
        rows, new_rows = refused.rows + both.rows, refused.new_rows + both.new_rows
        outside_rows = refused.outside_rows + both.outside_rows
        both = replace(both, rows=rows, new_rows=new_rows, outside_rows=outside_rows)
        both = replace(both, left_out_rows=refused.rows)
    return replace(outcome, results=(*outcome.results, *evaluated), quarantined=both or refused)


def _rows(attempt: Attempt, outside: OutsidePartitions) -> "DataFrame":
    """Return what tells the rows that are left out of a source, and of no other column
    anything.
    """
    rows = read(attempt.engine, outside.source, outside.every.outside(outside.column))
    by = attempt.table.overwritten_by or outside.column
    sources = [name for name in SOURCE_COLUMNS if name in rows.columns]
    return rows.selectExpr(
        f"{identifier(outside.column)} AS {identifier(by)}", *map(identifier, sources)
    )


def _refused(attempt: Attempt, outside: OutsidePartitions) -> "DataFrame":
    """Return the rows that are left out of a source as the quarantine has them."""
    rows = read(attempt.engine, outside.source, outside.where)
    return rows_without_partition(attempt.table, rows, outside.column)


def rows_without_partition(table: IcebergTable, rows: "DataFrame", column: str) -> "DataFrame":
    """Return rows of a source that belong to no partition of a table as its quarantine has them:
    its columns as text, by their names there or by those that they were renamed from.

    :param column: the source's column that tells the partitions.
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

    def held(name: str) -> str:
        if name in own:
            return own[name]
        source = sources.get(name)
        if source is None:
            return f"CAST(NULL AS {target.column(name).type})"
        return text_sql(
            source, has_parts=has_parts[source], says_offset=tells_moments(table, name)
        )

    terms = {name: held(name) for name in written_columns(target)}
    return rows.selectExpr(*(f"{sql} AS {identifier(name)}" for name, sql in terms.items()))


def _by_former_names(table: IcebergTable, present: Collection[str]) -> dict[str, str]:
    """Return, by column of a table, the source's column that it is renamed from."""
    known = {}
    for column in table.columns:
        for name in column.renamed_from:
            if name in present:
                known[column.name] = name
    return known
