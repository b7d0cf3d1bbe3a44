"""The rules that rows answer, evaluated: one query for all on rows and figures, at most one
more for all on keys.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_result import RuleResult
from lakehouse.iceberg.read.inputs import read_main
from lakehouse.iceberg.rules.aggregates import measured, measures
from lakehouse.iceberg.rules.concurrently import beside
from lakehouse.iceberg.rules.keys import KeyRule, count_broken, key_bounds
from lakehouse.iceberg.rules.one_job import planned_once
from lakehouse.tables.measures import Aggregate
from lakehouse.tables.quoting import counts, identifier, literal, with_zone
from lakehouse.tables.redaction import COUNTED_ROWS, redacted
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import IcebergTable
from lakehouse.tables.types import WHOLE_NUMBERS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

SAMPLE_ROWS = 20
TOTAL = "__total"
_OF = "__of"
_RANK = "__rank"


class Audited(NamedTuple):
    """What rules found, and what was measured of the declared columns, by metric."""

    results: list[RuleResult]
    measured: dict[str, float]


def audit(
    engine: Engine,
    table: IcebergTable,
    rows: "DataFrame",
    rules: Sequence[Rule],
    existing: "DataFrame | None" = None,
    read_other: "Callable[[str], DataFrame] | None" = None,
    *,
    measure: bool = False,
) -> Audited:
    """Evaluate rules on typed rows, with a sample of at most 20 rows for each rule that does
    not hold.

    One query, a single Spark job, answers all that rows tell by themselves, and one more what
    others must tell: whether a key stands elsewhere, or has no partner. Both run at once,
    unless the second looks only near the keys that the first finds.

    :param rules: those of other kinds, which rows do not answer, are passed over.
    :param existing: rows already in the table, that new ones must be unique among as well; only
        those whose key can be among the new ones are read.
    :param read_other: gives the rows of another table that is referred to; what readers see
        where it is left out.
    :param measure: whether to measure the declared columns too, in the same query.
    """
    rules = [rule for rule in rules if rule.asks_rows]
    keyed = [
        KeyRule(rule, existing) if rule.unique_on else _reference(engine, rule, read_other)
        for rule in _keys(rules)
    ]
    bounds = [key for key in keyed if key.others is not None]
    asked = _row_counts(table, rules) | figures(table, rules) | key_bounds(bounds)
    if measure:
        asked |= measures(table)
    with planned_once(engine.spark):
        if bounds or not keyed:
            found = count(rows, asked)
            keyed = [key.near(found) for key in keyed]
            repeated = count_broken(rows, keyed)
        else:
            with beside(engine.spark, lambda: count_broken(rows, keyed)) as other:
                found = count(rows, asked)
            repeated = other.result()
    broken = {rule.name: found[rule.name] for rule in rules if rule.is_row_rule} | repeated
    results = [_result(rule, broken, found) for rule in rules]
    return Audited(
        _sampled(engine, table, rows, results, {key.rule.name: key for key in keyed}),
        measured(found),
    )


def _result(rule: Rule, broken: Mapping[str, int], found: Mapping[str, Any]) -> RuleResult:
    if rule.kind == "figures":
        return RuleResult(rule, 0, found[TOTAL], value=found[rule.name])
    return RuleResult(rule, broken[rule.name], found[TOTAL])


def _keys(rules: Sequence[Rule]) -> list[Rule]:
    return [rule for rule in rules if rule.kind == "keys"]


def _reference(
    engine: Engine, rule: Rule, read_other: "Callable[[str], DataFrame] | None"
) -> KeyRule:
    assert rule.references is not None
    return KeyRule(
        rule,
        (
            read_other(rule.references.table)
            if read_other
            else read_main(engine, rule.references.table)
        ),
    )


def _sampled(
    engine: Engine,
    table: IcebergTable,
    rows: "DataFrame",
    results: Sequence[RuleResult],
    keyed: Mapping[str, KeyRule],
) -> list[RuleResult]:
    """Return results with samples of the rows that break the rules which do not hold."""
    failed = {
        result.rule.name: result.failed_rows
        for result in results
        if not result.passed and result.failed_rows
    }
    broken = {
        found.rule.name: table.broken_by(found.rule)
        for found in results
        if found.rule.is_row_rule and not found.passed
    }
    samples: dict[str, tuple[Mapping[str, Any], ...]] = samples_of(
        engine, table, rows, broken, failed, ["*"]
    )
    samples |= {
        name: sample_of(engine, table, key.broken_rows(rows))
        for name, key in keyed.items()
        if name in failed
    }
    return [replace(result, sample=samples.get(result.rule.name, ())) for result in results]


def count(rows: "DataFrame", expressions: Mapping[str, str]) -> dict[str, Any]:
    """Evaluate SQL aggregates over all rows in one query; `TOTAL` of the result is how many
    rows there are.
    """
    found = rows.selectExpr(
        f"count(1) AS {TOTAL}",
        *(f"{sql} AS {identifier(name)}" for name, sql in expressions.items()),
    )
    row = found.first()
    assert row is not None
    return row.asDict()


def _row_counts(table: IcebergTable, rules: Sequence[Rule]) -> dict[str, str]:
    return {rule.name: counts(table.broken_by(rule)) for rule in rules if rule.is_row_rule}


def figures(table: IcebergTable, rules: Sequence[Rule], where: str = "") -> dict[str, str]:
    """Return the SQL aggregates that rules bound, by rule.

    :param where: a SQL predicate on the rows that count.
    """
    only = f" FILTER (WHERE {where})" if where else ""
    aggregates = {
        rule.name: rule.measure for rule in rules if isinstance(rule.measure, Aggregate)
    }
    return {
        name: f"{_aggregate(table, aggregate)}{only}" for name, aggregate in aggregates.items()
    }


def _aggregate(table: IcebergTable, aggregate: Aggregate) -> str:
    column = identifier(aggregate.column)
    # A sum of whole numbers may need more digits than they have: Spark stops the query where it
    # overflows.
    exact = aggregate.function == "sum" and table.column(aggregate.column).type in WHOLE_NUMBERS
    return (
        f"sum(CAST({column} AS DECIMAL(38,0)))" if exact else f"{aggregate.function}({column})"
    )


def samples_of(
    engine: Engine,
    table: IcebergTable,
    rows: "DataFrame",
    broken: Mapping[str, str],
    failed: Mapping[str, int],
    terms: Sequence[str],
) -> dict[str, tuple[Mapping[str, Any], ...]]:
    """Return by name at most 20 of the rows that meet each of several predicates.

    The first rows that meet any of them tell what is common, without a look at all; what is
    rare is looked for by one pass over all rows.

    :param failed: how many rows meet each predicate.
    :param terms: what to select of each row.
    """
    if not broken:
        return {}
    found: dict[str, list[Row]] = {}
    for row in _met(rows, broken, terms).limit(COUNTED_ROWS).collect():
        for name in row[_OF]:
            found.setdefault(name, []).append(row)
    rare = {
        name: test
        for name, test in broken.items()
        if len(found.get(name, ())) < min(SAMPLE_ROWS, failed[name])
    }
    if rare:
        found |= _rare(_met(rows, rare, terms))
    looked_at = [row for some in found.values() for row in some]
    return {
        name: _shown(engine, table, some[:SAMPLE_ROWS], looked_at)
        for name, some in found.items()
    }


def _met(rows: "DataFrame", broken: Mapping[str, str], terms: Sequence[str]) -> "DataFrame":
    """Return the rows that meet any of some predicates, and the names of those that each
    meets.
    """
    names = ", ".join(
        f"CASE WHEN {predicate} THEN {literal(name)} END" for name, predicate in broken.items()
    )
    any_of = f"({' OR '.join(broken.values())})"
    return rows.where(any_of).selectExpr(*terms, f"array_compact(array({names})) AS {_OF}")


def _rare(met: "DataFrame") -> "dict[str, list[Row]]":
    each = met.withColumn(_OF, _explode(_OF))
    ranked = each.selectExpr(
        "*", f"row_number() OVER (PARTITION BY {_OF} ORDER BY {_OF}) AS {_RANK}"
    )
    found: dict[str, list[Row]] = {}
    for row in ranked.where(f"{_RANK} <= {SAMPLE_ROWS}").drop(_RANK).collect():
        found.setdefault(row[_OF], []).append(row)
    return found


def _explode(column: str) -> "Column":
    from pyspark.sql.functions import explode

    return explode(column)


def sample_of(
    engine: Engine, table: IcebergTable, broken: "DataFrame"
) -> tuple[Mapping[str, Any], ...]:
    """Return at most 20 of some rows as plain values, redacted."""
    found = broken.limit(COUNTED_ROWS if table.holds_personal_data else SAMPLE_ROWS).collect()
    return _shown(engine, table, found[:SAMPLE_ROWS], found)


def _shown(
    engine: Engine, table: IcebergTable, found: "Sequence[Row]", looked_at: "Sequence[Row]"
) -> tuple[Mapping[str, Any], ...]:
    rows = redacted(engine.masking_key, table, _values(found), _values(looked_at))
    return tuple(
        {name: _plain(table, name, value) for name, value in row.items()} for row in rows
    )


def _values(rows: "Sequence[Row]") -> list[dict[str, Any]]:
    """Return rows by the names of their columns."""
    found = (row.asDict(recursive=True) for row in rows)
    return [{name: value for name, value in row.items() if name != _OF} for row in found]


def _plain(table: IcebergTable, name: str, value: Any) -> Any:
    """Return what Dagster keeps: a moment in UTC, which Spark gives in the machine's time."""
    if isinstance(value, datetime) and not table.is_wall_time(name):
        value = with_zone(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
