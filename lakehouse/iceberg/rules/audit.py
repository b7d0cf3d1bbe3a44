"""Evaluation of rules on rows: one query for all aggregates, and at most one for all lookups."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.frames.frames import union_all
from lakehouse.iceberg.frames.parallel_jobs import concurrently, planned_once
from lakehouse.iceberg.rules.column_profile import profile_aggregates, profile_of
from lakehouse.iceberg.rules.evaluable_rule import (
    EvaluatedRows,
    Lookup,
    evaluable,
    row_aggregates,
)
from lakehouse.iceberg.rules.failing_row_samples import sample_of, samples_of
from lakehouse.iceberg.values.write_result import RuleResult
from lakehouse.tables.quoting import identifier
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOTAL = "__total"


class Audited(NamedTuple):
    """Results of rules, the profile of the profiled columns by metric, and the number of rows."""

    results: list[RuleResult]
    profile: dict[str, float]
    rows: int


def audit(
    engine: Engine,
    table: IcebergTable,
    rows: "DataFrame",
    rules: Sequence[Rule],
    existing: "DataFrame | None" = None,
    read_other: "Callable[[str], DataFrame] | None" = None,
    *,
    profile: bool = False,
) -> Audited:
    """Evaluate rules on typed rows, with a sample of at most 20 rows for each failed rule.

    One query, a single Spark job, computes all aggregates of the rows, and one more all lookups
    in other rows: duplicate keys and missing references. Both run concurrently, unless the
    lookups are pruned by the results of the first.

    :param rules: rules that do not read rows are ignored.
    :param existing: existing rows of the table, for unique rules; only rows in the key range
        are read.
    :param read_other: returns the rows of a referenced table; defaults to its current rows.
    :param profile: whether to profile the declared columns in the same query.
    """
    evaluated = EvaluatedRows(engine, table, rows, existing, read_other)
    row_rules = [rule for rule in evaluable(rules) if rule.reads_rows]
    lookups: dict[str, Lookup] = {
        rule.name: rule.lookup(evaluated) for rule in row_rules if rule.reads_other_rows
    }
    pruning: dict[str, str] = {}
    for lookup in lookups.values():
        pruning |= lookup.aggregates()
    aggregates = row_aggregates(table, row_rules) | pruning
    if profile:
        aggregates |= profile_aggregates(table)
    with planned_once(engine.spark):
        if pruning or not lookups:
            values = count(rows, aggregates)
            lookups = {name: lookup.pruned(values) for name, lookup in lookups.items()}
            failed_rows = _count_lookups(rows, lookups)
        else:
            with concurrently(engine.spark, lambda: _count_lookups(rows, lookups)) as counting:
                values = count(rows, aggregates)
            failed_rows = counting.result()
    total = values[TOTAL]
    results = [rule.result(values | failed_rows, total) for rule in row_rules]
    return Audited(_sampled(evaluated, results, lookups), profile_of(values), total)


def count(rows: "DataFrame", expressions: Mapping[str, str]) -> dict[str, Any]:
    """Evaluate SQL aggregates over all rows in one query; `TOTAL` is the number of rows."""
    row = rows.selectExpr(
        f"count(1) AS {TOTAL}",
        *(f"{sql} AS {identifier(name)}" for name, sql in expressions.items()),
    ).first()
    assert row is not None
    return row.asDict()


def _count_lookups(rows: "DataFrame", lookups: Mapping[str, Lookup]) -> dict[str, int]:
    """Return the number of failing rows by rule, with one query for all rules."""
    if not lookups:
        return {}
    counts = union_all(lookup.count(rows) for lookup in lookups.values())
    return {row["rule"]: row["failed"] for row in counts.collect()}


def _sampled(
    evaluated: EvaluatedRows, results: Sequence[RuleResult], lookups: Mapping[str, Lookup]
) -> list[RuleResult]:
    """Add samples of failing rows to the results of failed rules."""
    engine, table, rows = evaluated.engine, evaluated.table, evaluated.rows
    failed = {
        result.rule.name: result
        for result in results
        if result.failed_rows and not result.passed
    }
    predicates = {
        name: table.broken_by(result.rule)
        for name, result in failed.items()
        if result.rule.is_row_rule
    }
    failed_rows = {name: result.failed_rows for name, result in failed.items()}
    samples = samples_of(engine, table, rows, predicates, failed_rows, ["*"])
    for name in failed.keys() & lookups.keys():
        samples[name] = sample_of(engine, table, lookups[name].broken_rows(rows))
    return [replace(result, sample=samples.get(result.rule.name, ())) for result in results]
