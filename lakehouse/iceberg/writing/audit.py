"""The rules of a table, evaluated: one query for all rules on rows, at most one more for uniqueness."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.engine import Engine
from lakehouse.iceberg.history import read_history
from lakehouse.iceberg.masking import mask_row
from lakehouse.iceberg.outcome import RuleResult
from lakehouse.iceberg.quoting import identifier, literal
from lakehouse.iceberg.rules.rule import Rule
from lakehouse.iceberg.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

SAMPLE_ROWS = 20
TOTAL = "__total"
_COMMON_ROWS = 1000
_OF = "__of"
_RANK = "__rank"


def evaluate(
    engine: Engine, table: IcebergTable, where: str | None = None, snapshot_id: int | None = None
) -> list[RuleResult]:
    """Evaluate a table's rules on what readers see, and write nothing.

    :param where: a SQL predicate on the rows to look at; all where it is left out.
    :param snapshot_id: the state to look at; the current one where it is left out.
    :raises TableNotFound: when the table is not there.
    """
    main = read_history(engine, table.name).main
    if snapshot_id is None and main is None:
        return [RuleResult(rule, 0, 0) for rule in table.rules]
    pinned = str(snapshot_id or main.snapshot_id)  # type: ignore[union-attr]
    frame = engine.spark.read.option("versionAsOf", pinned).table(engine.catalog.sql_name(table.name))
    return audit(engine, table, frame.where(where) if where else frame, table.rules)


def audit(
    engine: Engine,
    table: IcebergTable,
    rows: "DataFrame",
    rules: Sequence[Rule],
    existing: "DataFrame | None" = None,
) -> list[RuleResult]:
    """Evaluate rules on typed rows, with a sample of at most 20 rows for each rule that failed.

    :param existing: rows already in the table, that new ones must be unique among as well; only those whose key can be
        among the new ones are read.
    """
    unique_rules = [rule for rule in rules if rule.unique_on]
    found = count(rows, _row_counts(rules) | (_key_bounds(unique_rules) if existing is not None else {}))
    failed = {rule.name: found[rule.name] for rule in rules if rule.is_row_rule}
    near = {rule.name: _near(existing, rule, found) for rule in unique_rules} if existing is not None else {}
    if unique_rules:
        failed |= _count_duplicates(rows, unique_rules, near)

    broken = {rule.name: rule.predicate() for rule in rules if rule.is_row_rule and failed[rule.name]}
    samples: dict[str, tuple] = samples_of(engine, table, rows, broken, failed, ["*"])
    for rule in unique_rules:
        if failed[rule.name]:
            samples[rule.name] = sample_of_repeated(engine, table, rows, rule, near.get(rule.name))
    return [RuleResult(rule, failed[rule.name], found[TOTAL], samples.get(rule.name, ())) for rule in rules]


def count(rows: "DataFrame", expressions: Mapping[str, str]) -> dict[str, Any]:
    """Evaluate SQL aggregates over all rows in one query; `TOTAL` of the result is how many rows there are."""
    found = rows.selectExpr(
        f"count(1) AS {TOTAL}", *(f"{sql} AS {identifier(name)}" for name, sql in expressions.items())
    )
    row = found.first()
    assert row is not None
    return row.asDict()


def _row_counts(rules: Sequence[Rule]) -> dict[str, str]:
    return {rule.name: f"count_if({rule.predicate()})" for rule in rules if rule.is_row_rule}


def _key_bounds(rules: Sequence[Rule]) -> dict[str, str]:
    bounds = {}
    for rule in rules:
        key = identifier(rule.unique_on[0])
        bounds |= {f"__low_{rule.name}": f"min({key})", f"__high_{rule.name}": f"max({key})"}
    return bounds


def _near(existing: "DataFrame", rule: Rule, found: Mapping[str, Any]) -> "DataFrame":
    """Narrow the rows of the table to those whose key lies between the least and the greatest new one."""
    low, high = found[f"__low_{rule.name}"], found[f"__high_{rule.name}"]
    if low is None:
        return existing.where("false")
    key = identifier(rule.unique_on[0])
    return existing.where(f"{key} >= {literal(low)} AND {key} <= {literal(high)}")


def samples_of(
    engine: Engine,
    table: IcebergTable,
    rows: "DataFrame",
    broken: Mapping[str, str],
    failed: Mapping[str, int],
    terms: Sequence[str],
) -> dict[str, tuple[Mapping[str, Any], ...]]:
    """Return by name at most 20 of the rows that meet each of several predicates.

    The first rows that meet any of them tell what is common, without a look at all; what is rare is looked for by one
    pass over all rows.

    :param failed: how many rows meet each predicate.
    :param terms: what to select of each row.
    """
    if not broken:
        return {}
    found: dict[str, list] = {}
    for row in _met(rows, broken, terms).limit(_COMMON_ROWS).collect():
        for name in row[_OF]:
            found.setdefault(name, []).append(row)
    rare = {name: test for name, test in broken.items() if len(found.get(name, ())) < min(SAMPLE_ROWS, failed[name])}
    if rare:
        found |= _rare(_met(rows, rare, terms))
    return {name: _shown(engine, table, some[:SAMPLE_ROWS]) for name, some in found.items()}


def _met(rows: "DataFrame", broken: Mapping[str, str], terms: Sequence[str]) -> "DataFrame":
    """Return the rows that meet any of some predicates, and the names of those that each meets."""
    names = ", ".join(f"CASE WHEN {predicate} THEN {literal(name)} END" for name, predicate in broken.items())
    any_of = f"({' OR '.join(broken.values())})"
    return rows.where(any_of).selectExpr(*terms, f"array_compact(array({names})) AS {_OF}")


def _rare(met: "DataFrame") -> dict[str, list]:
    each = met.withColumn(_OF, _explode(_OF))
    ranked = each.selectExpr("*", f"row_number() OVER (PARTITION BY {_OF} ORDER BY {_OF}) AS {_RANK}")
    found: dict[str, list] = {}
    for row in ranked.where(f"{_RANK} <= {SAMPLE_ROWS}").drop(_RANK).collect():
        found.setdefault(row[_OF], []).append(row)
    return found


def _explode(column: str) -> "Column":
    from pyspark.sql.functions import explode

    return explode(column)


def sample_of(engine: Engine, table: IcebergTable, broken: "DataFrame") -> tuple[Mapping[str, Any], ...]:
    """Return at most 20 of some rows as plain values, personal ones masked."""
    return _shown(engine, table, broken.limit(SAMPLE_ROWS).collect())


def _shown(engine: Engine, table: IcebergTable, found: "Sequence[Row]") -> tuple[Mapping[str, Any], ...]:
    rows = ({name: value for name, value in row.asDict(recursive=True).items() if name != _OF} for row in found)
    plain = ({name: _plain(value) for name, value in row.items()} for row in rows)
    return tuple(mask_row(engine.masking_key, row, table.personal_columns) for row in plain)


def sample_of_repeated(
    engine: Engine, table: IcebergTable, rows: "DataFrame", rule: Rule, existing: "DataFrame | None" = None
) -> tuple[Mapping[str, Any], ...]:
    """Return at most 20 keys that stand more than once, with how often they do."""
    keys = [identifier(name) for name in rule.unique_on]
    repeated = _marked(rows, rule, existing).groupBy(*keys).agg({"*": "count", "__new": "sum"})
    return sample_of(
        engine, table, repeated.where("`count(1)` > 1 AND `sum(__new)` > 0").selectExpr(*keys, "`count(1)` AS rows")
    )


def _count_duplicates(rows: "DataFrame", rules: Sequence[Rule], existing: "Mapping[str, DataFrame]") -> dict[str, int]:
    counted = None
    for rule in rules:
        one = _duplicates_of(rows, rule, existing.get(rule.name))
        counted = one if counted is None else counted.unionAll(one)
    assert counted is not None
    return {row["rule"]: row["failed"] for row in counted.collect()}


def _duplicates_of(rows: "DataFrame", rule: Rule, existing: "DataFrame | None") -> "DataFrame":
    """Return one row: how many rows repeat a key, the first of each new key not counted."""
    keys = [identifier(name) for name in rule.unique_on]
    grouped = (
        _marked(rows, rule, existing)
        .groupBy(*keys)
        .agg({"__new": "sum", "*": "count"})
        .selectExpr("`sum(__new)` AS added", "`count(1)` AS standing")
    )
    repeats = "CASE WHEN standing > added THEN added ELSE added - 1 END"
    return grouped.selectExpr(
        f"{literal(rule.name)} AS rule", f"coalesce(sum(if(added > 0, {repeats}, 0)), 0) AS failed"
    )


def _marked(rows: "DataFrame", rule: Rule, existing: "DataFrame | None") -> "DataFrame":
    keys = [identifier(name) for name in rule.unique_on]
    marked = _with_key(rows, rule.unique_on).selectExpr(*keys, "1 AS __new")
    if existing is None:
        return marked
    return marked.unionAll(_with_key(existing, rule.unique_on).selectExpr(*keys, "0 AS __new"))


def _with_key(rows: "DataFrame", columns: Sequence[str]) -> "DataFrame":
    return rows.where(" AND ".join(f"{identifier(name)} IS NOT NULL" for name in columns))


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
