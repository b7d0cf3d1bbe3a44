"""One attempt of an append or an overwrite."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakehouse.errors import UsageError
from lakehouse.iceberg.frames.broadcast_joins import with_keys, without_keys
from lakehouse.iceberg.frames.parallel_jobs import concurrently
from lakehouse.iceberg.metadata.snapshots import Snapshot
from lakehouse.iceberg.read.pinned_frames import read_main, rows_at, rows_between
from lakehouse.iceberg.read.row_version_inputs import has_no_partition
from lakehouse.iceberg.rules.audit import Audited, audit, count
from lakehouse.iceberg.rules.evaluable_rule import evaluable
from lakehouse.iceberg.rules.failing_row_samples import sample_of
from lakehouse.iceberg.rules.rows import InPartitionsRule, RowRule
from lakehouse.iceberg.values.write_result import Outcome, Quarantined, RuleResult
from lakehouse.iceberg.write import stage_statements
from lakehouse.iceberg.write.prepared_frame import PreparedFrame, prepare
from lakehouse.iceberg.write.publish_branch import block, publish, unchanged
from lakehouse.iceberg.write.quarantine_removals import is_by_source
from lakehouse.iceberg.write.quarantine_writes import quarantine
from lakehouse.iceberg.write.split_rows import (
    count_terms,
    evaluate_rejections,
    evaluated,
    none_rejected,
    split_rows,
)
from lakehouse.iceberg.write.withdrawn_rows import (
    WithdrawnRows,
    take_out_appended,
    take_out_computed,
)
from lakehouse.iceberg.write.write_attempt import Attempt, evaluate_prepared, other_table_reader
from lakehouse.tables import types
from lakehouse.tables.quoting import identifier, in_utc, literals, without_zone
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import SOURCE_COLUMNS, Append, IcebergTable, OverwritePartitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rows_attempt(
    attempt: Attempt, frame: "DataFrame", withdrawn: WithdrawnRows | None = None
) -> Outcome:
    """Stage rows by append or overwrite, audit the changes, and publish or block them.

    :param withdrawn: removed rows of erased data subjects, if an append follows erasures of its
        inputs.
    """
    if isinstance(attempt.table.write, Append):
        return _append_attempt(attempt, frame, withdrawn)
    prepared = prepare(attempt.table, frame)
    return _publish_or_block(attempt, *_overwrite(attempt, prepared))


def _append_attempt(
    initial: Attempt, frame: "DataFrame", withdrawn: WithdrawnRows | None
) -> Outcome:
    attempt = take_out_appended(initial)
    attempt = take_out_computed(attempt, withdrawn) if withdrawn else attempt
    has_less = attempt is not initial
    prepared = prepare(attempt.table, frame)
    if attempt.table.once_by and attempt.request.arriving is None:
        _require_keys(attempt.table, frame)
    rows = _not_landed(attempt, prepared.frame) if attempt.table.once_by else prepared.frame
    if rows is None:
        return publish(initial, (), None) if has_less else unchanged(attempt, (), None)
    results, quarantined = _append(attempt, replace(prepared, frame=rows))
    if not has_less and not _added(attempt):
        if any(result.blocks for result in results):
            return block(attempt, results, quarantined)
        return unchanged(attempt, results, quarantined)
    audited = _audited(attempt, [result.rule for result in results])
    audited = audited._replace(results=[*results, *audited.results])
    return _publish_or_block(initial, audited, quarantined)


def _append(
    attempt: Attempt, prepared: PreparedFrame
) -> tuple[list[RuleResult], Quarantined | None]:
    """Stage the accepted rows of an append, and evaluate the rules only if rows are missing.

    Counting rows of files reads no column, while the rules read all of theirs. A rule that
    tolerates rows and only counts them is evaluated on the staged rows.
    """
    casting = [
        rule
        for rule in attempt.table.row_rules
        if rule.cast and rule.on_failure != "quarantine"
    ]
    blocking = [
        rule
        for rule in attempt.table.row_rules
        if rule.on_failure == "block" and rule.fails_above == 0
    ]
    rules = [*attempt.table.quarantining_rules, *blocking]
    initial = prepared.cast_once().where(f"NOT {prepared.broken(blocking)}")
    stage_statements.append(attempt, prepared.accepted(initial))
    if not rules and not casting:
        return [], None
    added = _added(attempt)
    # If rows are missing, they were rejected.
    total = prepared.frame.count()
    has_all = total == added and all(rule in rules for rule in casting)
    if has_all and not attempt.scope.is_any:
        return [
            *(RuleResult(rule, 0, total) for rule in rules),
            *none_rejected(attempt.table, total),
        ], None
    evaluated_now = [*attempt.table.quarantining_rules, *casting]
    split = split_rows(
        prepared,
        prepared.frame,
        count(prepared.frame, count_terms(prepared, evaluated_now)),
        attempt.request.keep,
    )
    results = [
        *evaluated(attempt.engine, prepared, split, evaluated_now),
        *evaluate_rejections(prepared, split, attempt.history),
    ]
    quarantined = quarantine(attempt, prepared, split)
    rejected = quarantined.rows if quarantined else 0
    if total - rejected > _added(attempt):
        # They belong to the blocked candidate.
        stage_statements.append(
            attempt, prepared.accepted(prepared.frame.where(prepared.broken(blocking)))
        )
    return results, quarantined


def _added(attempt: Attempt) -> int:
    """Return the number of rows that an append has staged."""
    return attempt.head().rows - attempt.base.rows


def _overwrite(attempt: Attempt, prepared: PreparedFrame) -> tuple[Audited, Quarantined | None]:
    """Stage and audit the accepted rows, and quarantine the rejected ones in parallel.

    The rows are computed once and cached as rows, a third faster than a columnar cache.
    """
    if not attempt.table.quarantining_rules and not attempt.table.casts:
        stage_statements.overwrite(attempt, prepared.accepted(), _overwritten(attempt))
        return _audited(attempt), None
    prepared = prepared.evaluated()
    kept = attempt.request.keep(prepared.frame)
    rules, spark = attempt.table.row_rules, attempt.engine.spark
    aggregates = count_terms(prepared, rules, _without_partition(attempt))
    split = split_rows(prepared, kept, count(kept, aggregates), attempt.request.keep)
    with (
        concurrently(spark, lambda: quarantine(attempt, prepared, split)) as quarantined,
        concurrently(
            spark, lambda: evaluated(attempt.engine, prepared, split, rules)
        ) as split_results,
    ):
        stage_statements.overwrite(attempt, prepared.accepted(kept), _overwritten(attempt))
        audited = _audited(attempt, rules)
    rejections = evaluate_rejections(prepared, split, attempt.history)
    results = [*split_results.result(), *rejections, *audited.results]
    return audited._replace(results=results), quarantined.result()


def _without_partition(attempt: Attempt) -> str:
    """Return SQL of the rows that every run processes; empty without partitions."""
    partitions, by = attempt.run.partitions, attempt.table.overwritten_by
    return has_no_partition(partitions, by) if partitions and by else ""


def _publish_or_block(
    attempt: Attempt, audited: Audited, quarantined: Quarantined | None
) -> Outcome:
    if any(result.blocks for result in audited.results):
        return block(attempt, audited.results, quarantined)
    published = publish(attempt, audited.results, quarantined)
    rows = audited.rows if attempt.run.partitions else None
    return replace(published, profile=audited.profile, partition_row_count=rows)


def _audited(attempt: Attempt, split_by: Sequence[Rule] = ()) -> Audited:
    """Evaluate the rules on the staged rows, except those that the rows were split by."""
    head = attempt.head()
    known = {rule.name for rule in split_by}
    rules = [
        rule
        for rule in evaluable(attempt.table.rules)
        if rule.on_failure != "quarantine" and rule.name not in known
    ]
    # Partitions are always audited, to count their rows.
    needs_rows = (
        any(rule.reads_rows for rule in rules)
        or attempt.table.profiled_columns
        or attempt.table.overwritten_by
    )
    audited = Audited([], {}, 0)
    with concurrently(attempt.engine.spark, lambda: evaluate_prepared(attempt)) as prepared:
        if needs_rows:
            is_appended = isinstance(attempt.table.write, Append)
            is_added_to = is_appended and not attempt.base.is_empty
            audited = audit(
                attempt.engine,
                attempt.table,
                _changed_rows(attempt, head),
                rules,
                attempt.existing() if is_added_to else None,
                other_table_reader(attempt),
                profile=True,
            )
    outside = _outside(attempt, head, audited.rows)
    return audited._replace(results=[*audited.results, *prepared.result(), *outside])


def _overwritten(attempt: Attempt) -> str:
    """Return the predicate of the rows that this run replaces, whatever was computed."""
    mode = attempt.table.write
    if not isinstance(mode, OverwritePartitions):
        return "true"
    if attempt.run.partitions is None:
        raise UsageError(
            f"{attempt.table.name} is written by partitions of {mode.by}, and the run has"
            " none.",
            next_step="Run it for a partition or a range of partitions.",
        )
    return attempt.run.partitions.predicate(mode.by, attempt.table.column(mode.by).type)


def _changed_rows(attempt: Attempt, head: Snapshot) -> "DataFrame":
    """Return only the rows that the branch changed."""
    if isinstance(attempt.table.write, Append) and not attempt.base.is_empty:
        return rows_between(
            attempt.engine, attempt.table.name, attempt.base.snapshot_id, head.snapshot_id
        )
    rows = rows_at(attempt.engine, attempt.table.name, head.snapshot_id)
    return rows.where(_overwritten(attempt)) if attempt.table.overwritten_by else rows


def _outside(attempt: Attempt, head: Snapshot, rows_within: int) -> list[RuleResult]:
    """Block rows outside of the overwritten partitions, which Iceberg appends silently."""
    mode = attempt.table.write
    if not isinstance(mode, OverwritePartitions):
        return []
    written = head.count("added-records")
    rule = InPartitionsRule.of(mode.by, _overwritten(attempt))
    outside = written - rows_within
    if not outside:
        return [RuleResult(rule, 0, written)]
    staged = rows_at(attempt.engine, attempt.table.name, head.snapshot_id)
    added = staged.where(rule.predicate()).exceptAll(attempt.existing().where(rule.predicate()))
    return [RuleResult(rule, outside, written, sample_of(attempt.engine, attempt.table, added))]


def _not_landed(attempt: Attempt, frame: "DataFrame") -> "DataFrame | None":
    """Filter out existing rows, by typed `once_by` values; None if no rows remain for sure."""
    keys, arriving = attempt.table.once_by, attempt.request.arriving
    if attempt.base.is_empty:
        return None if arriving is not None and not arriving else frame
    if arriving is None:
        existing_keys = attempt.existing().selectExpr(*map(identifier, keys)).distinct()
        new_rows = without_keys(frame, existing_keys, keys)
        if not attempt.scope.rows or not is_by_source(attempt.table):
            return new_rows
        # The key is that of a delivery: other rows of it are in the table.
        return new_rows.unionByName(
            _quarantined(attempt, with_keys(frame, existing_keys, keys))
        )
    landed = _landed(attempt)
    if landed >= _keys_in_utc(arriving):
        return None
    return _without(attempt, frame, keys, landed) if landed else frame


def _require_keys(table: IcebergTable, frame: "DataFrame") -> None:
    """Reject rows with NULL in a key column: all of them would be one row.

    No query is needed if no column is nullable, or if a rule rejects such rows.
    """
    required = {
        rule.columns[0]
        for rule in table.row_rules
        if isinstance(rule, RowRule) and rule.requires_value and rule.on_failure != "warn"
    }
    nullable = {field.name for field in frame.schema.fields if field.nullable} - required
    lacking = [
        f"{identifier(name)} IS NULL"
        for name in table.once_by
        if name in nullable and not table.column(name).required
    ]
    if not lacking or frame.where(" OR ".join(lacking)).isEmpty():
        return
    raise UsageError(
        f"{table.name}: rows were computed without a value in {', '.join(table.once_by)}, the"
        " key of Append(once_by=…); expected one in each row.",
        next_step=(
            "Add not_null(…) to its rules, so that they go to its quarantine, or name columns"
            " that always have a value."
        ),
    )


def _without(
    attempt: Attempt, frame: "DataFrame", keys: Sequence[str], landed: set[tuple[Any, ...]]
) -> "DataFrame":
    """Filter rows out by a join: Spark Connect rejects hundreds of conditions."""
    from pyspark.sql.functions import broadcast

    rows = ", ".join(literals(values) for values in landed)
    names = ", ".join(map(identifier, keys))
    existing_keys = attempt.engine.sql(f"SELECT * FROM VALUES {rows} AS landed({names})")
    return without_keys(frame, broadcast(existing_keys), keys)


def _quarantined(attempt: Attempt, landed: "DataFrame") -> "DataFrame":
    """Return rows that landed before, but only in the quarantine; they are evaluated again."""
    assert attempt.table.quarantine is not None
    in_quarantine = read_main(attempt.engine, attempt.table.quarantine.name).select(
        *SOURCE_COLUMNS
    )
    rows = landed.join(in_quarantine, list(SOURCE_COLUMNS), "left_semi").select(*landed.columns)
    # Of rows made of one delivered row, some can be in the table. Spark cannot compare maps.
    columns = (
        each for each in attempt.table.columns if not types.has_map(types.parse(each.type))
    )
    return without_keys(rows, attempt.existing(), [each.name for each in columns])


def _keys_in_utc(keys: Sequence[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    return {tuple(map(in_utc, values)) for values in keys}


def _landed(attempt: Attempt) -> set[tuple[Any, ...]]:
    """Return the arriving keys that exist; bounds and Bloom filters skip files."""
    arriving = attempt.request.arriving
    if not arriving or attempt.base.is_empty:
        return set()
    keys, expected = attempt.table.once_by, _keys_in_utc(arriving)
    rows = attempt.existing().selectExpr(*map(identifier, keys))
    for at, key in enumerate(keys):
        values = sorted({values[at] for values in expected})
        rows = rows.where(f"{identifier(key)} IN {literals(values)}")
    terms = [without_zone(identifier(key), attempt.table.column(key).type) for key in keys]
    return _keys_in_utc(rows.selectExpr(*terms).distinct().collect()) & expected
