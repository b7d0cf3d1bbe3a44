"""Rejected rows and rows in no partition, stored in the quarantine with their reasons."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakehouse.errors import QuarantineFailed
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.frames.broadcast_joins import BROADCAST_ROW_LIMIT, having
from lakehouse.iceberg.frames.frames import union_all
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.cleared_rows import without_cleared
from lakehouse.iceberg.read.pinned_frames import read, read_main
from lakehouse.iceberg.read.rows_outside_partitions import (
    HAS_PARTITION,
    IS_OUTSIDE_PARTITIONS,
    OutsidePartitions,
    has_partition,
)
from lakehouse.iceberg.read.version_keys import is_newer_sql, order_sql
from lakehouse.iceberg.rules.failing_row_samples import SAMPLE_ROWS, sample_of
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_result import (
    Outcome,
    Published,
    Quarantined,
    Refused,
    RuleResult,
    by_table,
)
from lakehouse.iceberg.write.prepared_frame import (
    DELETED,
    PreparedFrame,
    depends_on_time_zone,
    text_sql,
    written_columns,
)
from lakehouse.iceberg.write.quarantine_removals import (
    delivered_in_type,
    leaving,
    not_rejected_now,
)
from lakehouse.iceberg.write.rejected_row_keys import each_once, row_key_sql
from lakehouse.iceberg.write.split_rows import Split
from lakehouse.iceberg.write.write_attempt import Attempt, Write
from lakehouse.tables.quoting import identifier, literal
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def quarantine(attempt: Attempt, prepared: PreparedFrame, split: Split) -> Quarantined | None:
    """Merge the rejected rows into the quarantine, idempotently by source; None without any.

    Cleared rows are not added again. Rows that leave are only collected, and removed after the
    publish: a blocked write must not lose them.
    """
    engine, target = attempt.engine, prepared.table.quarantine
    if target is None:
        return None
    prepared = replace(prepared, has_some_keys=attempt.request.reads_keys)
    if attempt.scope.is_any:
        attempt.removals.append(leaving(attempt, prepared, split))
    if _has_correctable_rows(engine, prepared.table):
        attempt.removals.append(_corrected(engine, prepared, split))
    if not split.rejected_count:
        return None

    def changes() -> "DataFrame":
        # Few rows in one partition are deduplicated without a shuffle.
        rejected = (
            split.rejected.coalesce(1)
            if split.rejected_count < BROADCAST_ROW_LIMIT
            else split.rejected
        )
        rows = prepared.quarantine_rows(rejected).selectExpr("*", f"false AS {DELETED}")
        return without_cleared(engine, prepared.table, rows)

    outcome = attempt.driver.write_quarantine(
        engine, target, changes, run=Run(attempt.run.run_id)
    )
    if isinstance(outcome, Refused):
        reasons = ", ".join(result.rule.name for result in outcome.reasons)
        table = attempt.table.name
        raise QuarantineFailed(
            f"{target.name} rejected the quarantined rows of {table}: they break {reasons}. Nothing"
            " was published, and nothing is lost.",
            next_step=(
                f"`lakehouse backfill {table}` recomputes it; if that fails too, please report it."
            ),
        )
    new_rows = outcome.inserted_rows if isinstance(outcome, Published) else 0
    return Quarantined(
        target.name,
        split.rejected_count,
        new_rows or 0,
        outcome.snapshot_id,
        split.outside_count,
    )


def _has_correctable_rows(engine: Engine, table: IcebergTable) -> bool:
    """Whether the quarantine has rows that an accepted row of their version key can correct."""
    if table.quarantine is None or not table.version_key:
        return False
    main = read_history(engine, table.quarantine.name).main
    return bool(main and main.rows)


def _corrected(engine: Engine, prepared: PreparedFrame, split: Split) -> "DataFrame":
    """Return the keys of quarantined rows that an accepted, not older version corrects.

    For a merge without versions, any accepted row with the key; never a row rejected again.
    """
    from pyspark.sql.functions import expr

    table, key = prepared.table, prepared.table.version_key
    assert table.quarantine is not None
    newest = table.versions.newest if table.versions else ()
    # A deleted row corrects nothing.
    rows = split.rows.where(f"NOT {DELETED}") if prepared.deletes else split.rows
    columns = dict.fromkeys((*key, *newest))
    accepted = prepared.accepted(rows).selectExpr(*map(identifier, columns))
    same = " AND ".join(
        f"{delivered_in_type(table, name, 'q')} = a.{identifier(name)}" for name in key
    )
    corrected = having(
        read_main(engine, table.quarantine.name).alias("q"),
        accepted.alias("a"),
        expr(f"{same} AND NOT {_is_newer(table, newest)}"),
        split.count,
    )
    return not_rejected_now(prepared, split, corrected.select("_row_key", "_source_file"))


def _is_newer(table: IcebergTable, newest: Sequence[str]) -> str:
    """Return the SQL predicate that a quarantined row `q` is newer than an accepted one `a`."""
    if not newest:
        return "false"
    rejected = {name: delivered_in_type(table, name, "q") for name in newest}
    accepted = {name: f"a.{identifier(name)}" for name in newest}
    return is_newer_sql(rejected, order_sql(accepted))


def keys_to_remove(attempt: Attempt) -> "DataFrame | None":
    """Return the keys of the rows that leave the quarantine because of a write, if any."""
    if not attempt.removals:
        return None
    keys = union_all(frame.select("_row_key", "_source_file") for frame in attempt.removals)
    keys = keys.dropDuplicates(["_row_key"])
    return None if keys.isEmpty() else keys


def take_out(
    engine: Engine, table: IcebergTable, run_id: str, write: Write, keys: "DataFrame"
) -> None:
    """Remove rows by key from a quarantine, for a finished write of its table."""
    deletes = keys.selectExpr("_row_key", "_source_file", f"true AS {DELETED}")
    write(engine, table.quarantine, lambda: deletes, run=Run(run_id, follows=True))


def quarantine_outside_partitions(attempt: Attempt) -> Quarantined | None:
    """Update the quarantine by the rows that are in no partition now.

    None, without Spark, if an earlier run has processed the same rows, or without a quarantine.
    """
    target, sources = attempt.table.quarantine, attempt.fence.outside
    if target is None or all(outside.is_settled for outside in sources):
        return None

    def changes() -> "DataFrame":
        now_outside = each_once(union_all(_rejected(attempt, outside) for outside in sources))
        now_outside = without_cleared(attempt.engine, attempt.table, now_outside)
        existing = read_main(attempt.engine, target.name).where(IS_OUTSIDE_PARTITIONS)
        obsolete = existing.join(now_outside.select("_row_key"), "_row_key", "left_anti")
        names = [identifier(name) for name in written_columns(target)]
        return now_outside.selectExpr(*names, f"false AS {DELETED}").unionByName(
            obsolete.selectExpr(*names, f"true AS {DELETED}")
        )

    outcome = attempt.driver.write_quarantine(
        attempt.engine, target, changes, run=Run(attempt.run.run_id)
    )
    new_rows = outcome.inserted_rows if isinstance(outcome, Published) else 0
    rows = sum(outside.rows for outside in sources)
    return Quarantined(target.name, rows, new_rows or 0, outcome.snapshot_id, rows, rows)


def evaluate_outside_partitions(attempt: Attempt) -> list[RuleResult]:
    """Return the result of the rule that each row of a partitioned input is in a partition.

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


def with_outside_partitions(
    outcome: Outcome, evaluated: Sequence[RuleResult], outside: Quarantined | None
) -> Outcome:
    """Return an outcome with the rows in no partition added to its rejected rows."""
    both = outcome.quarantined
    if outside and both:
        rows, new_rows = outside.rows + both.rows, outside.new_rows + both.new_rows
        outside_rows = outside.outside_rows + both.outside_rows
        both = replace(both, rows=rows, new_rows=new_rows, outside_rows=outside_rows)
        both = replace(both, unevaluated_rows=outside.rows)
    return replace(outcome, results=(*outcome.results, *evaluated), quarantined=both or outside)


def _rows(attempt: Attempt, outside: OutsidePartitions) -> "DataFrame":
    """Return the partition column and the source columns of the rows in no partition."""
    rows = read(attempt.engine, outside.source, outside.every.outside(outside.column))
    by = attempt.table.overwritten_by or outside.column
    sources = [name for name in SOURCE_COLUMNS if name in rows.columns]
    return rows.selectExpr(
        f"{identifier(outside.column)} AS {identifier(by)}", *map(identifier, sources)
    )


def _rejected(attempt: Attempt, outside: OutsidePartitions) -> "DataFrame":
    """Return the rows of a source in no partition, in the form of the quarantine."""
    rows = read(attempt.engine, outside.source, outside.where)
    return rows_without_partition(attempt.table, rows, outside.column)


def rows_without_partition(table: IcebergTable, rows: "DataFrame", column: str) -> "DataFrame":
    """Return source rows without a partition as quarantine rows, by current or former names.

    :param column: the source's partition column.
    """
    target, by = table.quarantine, table.overwritten_by
    assert target is not None
    has_parts = {
        name: kind.startswith(("struct", "array", "map")) for name, kind in rows.dtypes
    }
    texts = [text_sql(name, has_parts=nested) for name, nested in has_parts.items()]
    # By column of the quarantine, the source column.
    sources = {by: column}
    for kept in target.columns:
        for name in kept.renamed_from:
            if name in has_parts:
                sources[kept.name] = name
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
