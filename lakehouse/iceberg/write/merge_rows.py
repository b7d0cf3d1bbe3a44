"""One attempt of a merge; unchanged rows are not rewritten."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from lakehouse.iceberg.frames.broadcast_joins import (
    BROADCAST_KEY_LIMIT,
    BROADCAST_ROW_LIMIT,
    same_key,
    with_keys,
    without_keys,
)
from lakehouse.iceberg.read.version_keys import is_newer_sql, order_sql
from lakehouse.iceberg.rules.audit import audit, count
from lakehouse.iceberg.rules.column_profile import profile_aggregates, profile_of
from lakehouse.iceberg.rules.evaluable_rule import EvaluableRule, evaluable, row_aggregates
from lakehouse.iceberg.rules.failing_row_samples import sample_of
from lakehouse.iceberg.rules.unique_and_references import KeyLookup, UniqueRule
from lakehouse.iceberg.values.write_result import Outcome, RuleResult
from lakehouse.iceberg.write import stage_statements
from lakehouse.iceberg.write.prepared_frame import (
    DELETED,
    PreparedFrame,
    differs_sql,
    is_nested,
    prepare,
    written_columns,
)
from lakehouse.iceberg.write.publish_branch import block, publish, unchanged
from lakehouse.iceberg.write.quarantine_writes import quarantine
from lakehouse.iceberg.write.split_rows import (
    Split,
    count_terms,
    evaluate_rejections,
    evaluated,
    split_rows,
)
from lakehouse.iceberg.write.withdrawn_rows import (
    WithdrawnRows,
    with_withdrawn,
    without_rejected,
)
from lakehouse.iceberg.write.write_attempt import Attempt, evaluate_prepared, other_table_reader
from lakehouse.tables.quoting import counts, identifier, in_values, without_zone
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import IcebergTable, Merge
from lakehouse.tables.table_validation import REFUSED_SHARE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ACTION = "__action"
_REJECTED = "__rejected"
_FEW_VALUES = 1000
"""Limit of values to skip files by; a longer predicate costs more than it saves."""
_ROWS_OF_A_FILE = 100_000
"""Minimum number of new rows per file; readers open every small file."""
_INSERTED, _UPDATED, _DELETED, _SAME, _KEYS = (
    "__inserted",
    "__updated",
    "__deleted",
    "__same",
    "__keys",
)


def merge_attempt(
    attempt: Attempt, mode: Merge, frame: "DataFrame", withdrawn: WithdrawnRows | None
) -> Outcome:
    """Compare rows with the table by key, stage the differences, audit them, and publish or
    block them.

    The compared rows are cached for the counts, the quarantine and the merge, so that the
    audited rows are the written ones. A DataFrame cache is not sufficient: Spark 4.1 resolves
    the tables in a MERGE's source again, and fails on incremental reads (`No plan for
    TableReference`). For a large table, the source rows are cached before the comparison too,
    since their number determines the join. A small table is read in full without this count.

    :param withdrawn: rows that rejections removed from the inputs; their merged rows are
        deleted.
    """
    prepared, source = _prepared(attempt, mode, frame, withdrawn)
    compared, aggregate_values = _compared(attempt, mode, prepared, source)
    split = split_rows(prepared, compared, aggregate_values, attempt.request.keep)
    results = _results(attempt, mode, prepared, split)
    quarantined = quarantine(attempt, prepared, split)
    accepted_rows = split.count - split.rejected_count
    repeated = accepted_rows - aggregate_values[_KEYS]
    if repeated:
        return block(
            attempt,
            _with_repeated_keys(attempt, mode, prepared, compared, results, repeated),
            quarantined,
            staged=False,
        )
    inserted, updated, deleted = (
        aggregate_values[name] for name in (_INSERTED, _UPDATED, _DELETED)
    )
    if inserted + updated + deleted == 0:
        if any(result.blocks for result in results if _is_of_delivered(result.rule)):
            return block(attempt, results, quarantined, staged=False)
        return unchanged(attempt, results, quarantined)
    changed = prepared.accepted(compared.where(f"{_ACTION} <> 'same'"))
    _stage(attempt, mode, changed, source, inserted, updated + deleted)
    results += _on_other_keys(attempt, mode, changed)
    results += evaluate_prepared(attempt)
    if any(result.blocks for result in results):
        return block(attempt, results, quarantined)
    return replace(
        publish(attempt, results, quarantined),
        inserted_rows=inserted,
        updated_rows=updated,
        removed_rows=deleted,
        profile=profile_of(aggregate_values),
    )


def _prepared(
    attempt: Attempt, mode: Merge, frame: "DataFrame", withdrawn: WithdrawnRows | None
) -> "tuple[PreparedFrame, _SourceStats]":
    """Return the rows to merge, with evaluated rules, and their statistics."""
    prepared = prepare(attempt.table, frame).evaluated()
    if attempt.base.is_empty:
        return prepared, _SourceStats()
    prepared = with_withdrawn(attempt, mode, prepared, withdrawn) if withdrawn else prepared
    if attempt.scope.reads_existing:
        prepared = without_rejected(attempt, mode, prepared)
    if _is_small(attempt):
        return prepared, _SourceStats()
    prepared = replace(prepared, frame=attempt.request.keep(prepared.frame))
    return prepared, _source_stats(mode, prepared)


def _is_small(attempt: Attempt) -> bool:
    """Whether all rows of the table fit easily into one process."""
    rows = attempt.base.summary.get("total-records")
    return rows is not None and int(rows) < BROADCAST_ROW_LIMIT


class _SourceStats(NamedTuple):
    """Statistics of the source rows: their number (None if unknown), the predicate of matching
    table rows `t`, and whether all of them are deletes.
    """

    rows: int | None = None
    matching: str = "true"
    all_go: bool = False

    @property
    def is_few(self) -> bool:
        """Whether all source rows fit easily into one process."""
        return self.rows is not None and self.rows < BROADCAST_ROW_LIMIT


def _source_stats(mode: Merge, prepared: PreparedFrame) -> _SourceStats:
    from pyspark.sql.functions import expr

    stays = f"count_if({DELETED} IS NOT TRUE)" if prepared.deletes else "count(1)"
    columns = [prepared.table.column(name) for name in mode.prune_by]
    keys = [
        expr(without_zone(identifier(column.name), column.type)).alias(column.name)
        for column in columns
    ]
    row_counts = (
        prepared.frame.groupBy(*keys)
        .agg(expr("count(1) AS __rows"), expr(f"{stays} AS __stay"))
        .limit(_FEW_VALUES + 1)
        .collect()
    )
    if len(row_counts) > _FEW_VALUES:
        return _SourceStats()
    predicates = []
    for name in mode.prune_by:
        values = {row[name] for row in row_counts}
        predicates.append(in_values(name, values, "t"))
    return _SourceStats(
        sum(row["__rows"] for row in row_counts),
        " AND ".join(predicates) or "true",
        all_go=not any(row["__stay"] for row in row_counts),
    )


def _compared(
    attempt: Attempt, mode: Merge, prepared: PreparedFrame, source: _SourceStats
) -> "tuple[DataFrame, dict[str, Any]]":
    """Return the cached source rows with the action for each, and the counts from one query.

    Iceberg reads rows individually if a nested column is selected, and in batches otherwise.
    Therefore few rows are compared without nested columns first, and with them only if the
    other columns are equal. For deletes, the key and the version order are sufficient.
    """
    versions = attempt.table.versions
    key_columns = [*mode.on, *(versions.newest if versions else ())]
    columns = [*dict.fromkeys(key_columns)] if source.all_go else written_columns(attempt.table)
    nested = {name for name in columns if source.is_few and is_nested(attempt.table, name)} - {
        *mode.on
    }
    first = [name for name in columns if name not in nested]
    aggregates = _aggregates(attempt, mode, prepared)
    compared = attempt.request.keep(_compare(attempt, mode, prepared, source, first))
    aggregate_values = count(compared, aggregates)
    if nested and aggregate_values[_SAME]:
        alike = replace(prepared, frame=compared.where(f"{_ACTION} = 'same'").drop(_ACTION))
        different = compared.where(f"{_ACTION} <> 'same'")
        compared = attempt.request.keep(
            different.unionByName(_compare(attempt, mode, alike, source, columns))
        )
        aggregate_values = count(compared, aggregates)
    return compared, aggregate_values


def _compare(
    attempt: Attempt,
    mode: Merge,
    prepared: PreparedFrame,
    source: _SourceStats,
    columns: Sequence[str],
) -> "DataFrame":
    """Return the source rows, each with its action: insert, update, delete or same.

    Rejected rows that a newer version in the table corrects are left out.

    :param columns: columns to compare, including the keys.
    """
    from pyspark.sql.functions import broadcast

    is_deleted = identifier(DELETED) if prepared.deletes else "false"
    if attempt.base.is_empty:
        return prepared.frame.selectExpr(
            "*", f"if({is_deleted}, 'same', 'insert') AS {_ACTION}"
        )
    existing = (
        attempt.existing()
        .alias("t")
        .where(source.matching)
        .selectExpr(*map(identifier, columns), "true AS __existing")
    )
    if source.rows is not None and source.rows < BROADCAST_KEY_LIMIT:
        keys = prepared.frame.selectExpr(*map(identifier, mode.on))
        existing = with_keys(existing, keys, mode.on, source.rows)
    existing = broadcast(existing) if source.is_few or _is_small(attempt) else existing
    on = same_key(mode.on, "s", "t")
    rows = prepared.frame.selectExpr("*", f"{prepared.rejected_predicate} AS {_REJECTED}")
    joined = rows.alias("s").join(existing.alias("t"), on, "left_outer")
    joined = joined.where(f"NOT {_is_corrected(attempt, mode)}")
    differs = [
        differs_sql(attempt.table, name, "s", "t") for name in columns if name not in mode.on
    ]
    differ = f"NOT {_is_older(attempt)} AND ({' OR '.join(differs)})" if differs else "false"
    stays = f"t.__existing IS NULL OR {_outlives(attempt)}"
    action = (
        f"CASE WHEN {is_deleted} THEN if({stays}, 'same', 'delete') "
        f"WHEN t.__existing IS NULL THEN 'insert' WHEN {differ} THEN 'update' ELSE 'same' END"
    )
    return joined.selectExpr("s.*", f"{action} AS {_ACTION}").drop(_REJECTED)


def _is_corrected(attempt: Attempt, mode: Merge) -> str:
    """SQL: the source row is rejected and the target already has the same or a newer version."""
    versions = attempt.table.versions
    if versions is None or _is_newest(attempt):
        return "false"
    source, existing = (
        {name: f"{alias}.{identifier(name)}" for name in versions.newest} for alias in "st"
    )
    has_key = " AND ".join(f"s.{identifier(name)} IS NOT NULL" for name in mode.on)
    is_known = f"{has_key} AND t.__existing IS NOT NULL"
    return f"({_REJECTED} AND {is_known} AND NOT {is_newer_sql(source, order_sql(existing))})"


def _is_newest(attempt: Attempt) -> bool:
    """Whether the source rows are newer than all existing rows: full reads, or a rejection."""
    read = [pin for pin in attempt.fence.pins.values() if pin.table != attempt.table.name]
    reads_all = bool(read) and all(pin.since_snapshot_id is None for pin in read)
    return reads_all or bool(attempt.fence.withdrawn)


def _is_older(attempt: Attempt) -> str:
    """SQL: the target `t` has a newer version than the source row `s`, and is kept."""
    versions = attempt.table.versions
    if versions is None or _is_newest(attempt):
        return "false"
    source = ", ".join(f"s.{identifier(name)}" for name in versions.newest)
    existing = ", ".join(f"t.{identifier(name)}" for name in versions.newest)
    return f"(struct({source}) < struct({existing}))"


def _outlives(attempt: Attempt) -> str:
    """SQL: the target `t` has a newer version than the delete in `s`.

    A delete without a timestamp applies to any version.
    """
    versions, older = attempt.table.versions, _is_older(attempt)
    if versions is None:
        return older
    return f"(s.{identifier(versions.newest[0])} IS NOT NULL AND {older})"


def _aggregates(attempt: Attempt, mode: Merge, prepared: PreparedFrame) -> dict[str, str]:
    """Return the aggregates of one query: rules, rejected rows, actions, and distinct keys."""
    table = attempt.table
    rejected = prepared.rejected_predicate
    key = f"struct({', '.join(map(identifier, mode.on))})"
    counting = f"NOT {rejected} AND NOT {DELETED}" if prepared.deletes else f"NOT {rejected}"
    keys = f"count(DISTINCT CASE WHEN NOT {rejected} THEN {key} END)"
    return (
        count_terms(prepared, table.row_rules)
        | row_aggregates(table, _aggregated(table), counting)
        | profile_aggregates(table, f"({counting})")
        | {
            _INSERTED: counts(f"NOT {rejected} AND {_ACTION} = 'insert'"),
            _UPDATED: counts(f"NOT {rejected} AND {_ACTION} = 'update'"),
            _DELETED: counts(f"NOT {rejected} AND {_ACTION} = 'delete'"),
            _SAME: counts(f"{_ACTION} = 'same'"),
            _KEYS: keys,
        }
    )


def _results(
    attempt: Attempt, mode: Merge, prepared: PreparedFrame, split: Split
) -> list[RuleResult]:
    accepted_rows = split.count - split.rejected_count
    results = evaluated(attempt.engine, prepared, split, attempt.table.row_rules)
    results += evaluate_rejections(prepared, split, attempt.history)
    results += [
        rule.result(split.aggregate_values, accepted_rows)
        for rule in _aggregated(attempt.table)
    ]
    return results + [
        RuleResult(rule, 0, accepted_rows)
        for rule in attempt.table.rules
        if _is_key(rule, mode)
    ]


def _aggregated(table: IcebergTable) -> list[EvaluableRule]:
    """Return the rules that aggregates can evaluate, without row rules."""
    return [
        rule
        for rule in evaluable(table.rules)
        if rule.reads_rows and not rule.reads_other_rows and not rule.is_row_rule
    ]


def _is_of_delivered(rule: Rule) -> bool:
    """Whether a rule counts without changes too: it quarantines, or checks a cast."""
    is_of_rejected = rule.on_failure == "quarantine" or rule.name == REFUSED_SHARE
    return is_of_rejected or rule.cast is not None


def _with_repeated_keys(
    attempt: Attempt,
    mode: Merge,
    prepared: PreparedFrame,
    compared: "DataFrame",
    results: list[RuleResult],
    repeated: int,
) -> list[RuleResult]:
    """Add a failed rule for duplicate keys: a merge cannot decide between two rows."""
    rule = merge_key_rule(attempt.table, mode)
    broken = KeyLookup(_merge_key(mode)).broken_rows(prepared.accepted(compared))
    sample = sample_of(attempt.engine, attempt.table, broken)
    failed = RuleResult(rule, repeated, results[0].total_rows if results else repeated, sample)
    return [failed, *(result for result in results if result.rule.name != rule.name)]


def merge_key_rule(table: IcebergTable, mode: Merge) -> Rule:
    """Return the declared unique rule on the merge key, or that of the merge itself."""
    for rule in table.rules:
        if _is_key(rule, mode) and rule.on_failure == "block":
            return rule
    return _merge_key(mode)


def _merge_key(mode: Merge) -> UniqueRule:
    return UniqueRule(
        "unique_merge_key",
        f"{', '.join(mode.on)} is unique in the merged rows",
        tuple(mode.on),
        "block",
    )


def _is_key(rule: Rule, mode: Merge) -> bool:
    """Whether a rule requires unique merge keys, which the merge itself guarantees."""
    return rule.identifies_rows and set(mode.on) <= set(rule.columns)


def _on_other_keys(attempt: Attempt, mode: Merge, changed: "DataFrame") -> list[RuleResult]:
    """Evaluate unique rules on keys other than the merge's, on all resulting rows."""
    rules = [
        rule
        for rule in evaluable(attempt.table.rules)
        if rule.reads_other_rows and not _is_key(rule, mode)
    ]
    if not rules:
        return []
    keys = [identifier(key) for key in mode.on]
    staying = without_keys(attempt.existing(), changed.selectExpr(*keys), mode.on)
    added = changed.where(f"NOT {DELETED}") if DELETED in changed.columns else changed
    existing = None if attempt.base.is_empty else staying
    return audit(
        attempt.engine, attempt.table, added, rules, existing, other_table_reader(attempt)
    ).results


def _stage(
    attempt: Attempt,
    mode: Merge,
    changed: "DataFrame",
    source: _SourceStats,
    inserted: int,
    matched: int,
) -> None:
    if matched:
        stage_statements.merge(
            attempt,
            changed,
            mode,
            source.matching,
            inserted=inserted,
            matched=matched,
            all_go=source.all_go,
        )
        return
    # New rows need no join with the table. Each task writes a file.
    changed = changed.coalesce(max(1, inserted // _ROWS_OF_A_FILE))
    stamped = [f"current_timestamp() AS {identifier(mode.stamp)}"] if mode.stamp else []
    columns = map(identifier, written_columns(attempt.table))
    stage_statements.append(attempt, changed.selectExpr(*columns, *stamped))
