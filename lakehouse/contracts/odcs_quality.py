"""Export a table's rules as quality checks of the Open Data Contract Standard.

A check that a reader of the table can run becomes a metric of the standard or a Spark SQL
query. A check that needs the write, such as a cast of delivered text, becomes text.
"""

from typing import Any

from lakehouse.iceberg.rules.aggregate_rules import ColumnAggregateRule
from lakehouse.iceberg.rules.size_schema_and_freshness import FreshRule, RowCountRule
from lakehouse.tables.quoting import dotted, identifier
from lakehouse.tables.rule import Bounds, CastableRule, Number, Rule
from lakehouse.tables.table import IcebergTable, Merge

Check = dict[str, Any]


def quality_of_table(table: IcebergTable) -> list[Check]:
    """Return the checks of the table or of several columns."""
    return [_check(table, rule) for rule in table.rules if _column_of(table, rule) is None]


def quality_of_column(table: IcebergTable, column: str) -> list[Check]:
    """Return the checks of a single column."""
    return [_check(table, rule) for rule in table.rules if _column_of(table, rule) == column]


def is_always_there(table: IcebergTable, column: str) -> bool:
    """Return whether the column never contains NULL."""
    if table.column(column).required:
        return True
    return any(
        _counts_nulls(rule) and rule.columns == (column,) and _is_enforced(rule)
        for rule in table.rules
    )


def is_unique(table: IcebergTable, column: str) -> bool:
    """Return whether the column's values are unique."""
    return primary_key(table) == (column,) or any(
        _is_key(table, rule) and rule.columns == (column,) and _is_enforced(rule)
        for rule in table.rules
    )


def primary_key(table: IcebergTable) -> tuple[str, ...]:
    """Return the columns that every write ensures to be unique, or an empty tuple."""
    if isinstance(table.write, Merge):
        return tuple(table.write.on)
    for rule in table.rules:
        if _is_key(table, rule) and _is_enforced(rule):
            return rule.columns
    return ()


def _column_of(table: IcebergTable, rule: Rule) -> str | None:
    column = rule.columns[0] if len(rule.columns) == 1 else None
    return column if column in table.column_names else None


def _check(table: IcebergTable, rule: Rule) -> Check:
    check = {
        "id": rule.name,
        "name": rule.name,
        "description": _description(table, rule),
        **_evaluation(table, rule),
        "severity": "warning" if rule.on_failure == "warn" else "error",
        "customProperties": [{"property": "onFailure", "value": rule.on_failure}],
    }
    dimension = _dimension(rule)
    return {**check, "dimension": dimension} if dimension else check


def _description(table: IcebergTable, rule: Rule) -> str:
    if rule.identifies_rows and not _is_key(table, rule):
        return f"{rule.description} among the rows that a run writes"
    return rule.description


def _is_key(table: IcebergTable, rule: Rule) -> bool:
    """Return whether every write ensures that a rule's columns are unique.

    An overwrite of some partitions does not check other partitions, except for versions.
    """
    if not rule.identifies_rows:
        return False
    by, versions = table.overwritten_by, table.versions
    is_of_versions = versions is not None and {*versions.of} <= {*rule.columns}
    return by is None or by in rule.columns or is_of_versions


def _evaluation(table: IcebergTable, rule: Rule) -> Check:
    if isinstance(rule, RowCountRule) and rule.bounds:
        return {"type": "library", "metric": "rowCount", **_within(rule.bounds)}
    if isinstance(rule, ColumnAggregateRule) and rule.bounds:
        value = rule.aggregates(table)[rule.name]
        query = f"SELECT {value} FROM {dotted(table.name)}"
        return {"type": "sql", "query": query, **_within(rule.bounds)}
    if _is_key(table, rule):
        check: Check = {"type": "library", "metric": "duplicateValues"}
        if len(rule.columns) > 1:
            check["arguments"] = {"properties": list(rule.columns)}
        return {**check, **_tolerated(rule)}
    if _counts_nulls(rule):
        return {"type": "library", "metric": "nullValues", **_tolerated(rule)}
    if rule.is_row_rule and not isinstance(rule, CastableRule):
        return {
            "type": "sql",
            "query": _count_of_broken_rows(table, rule),
            **_tolerated(rule),
        }
    return {"type": "text"}


def _counts_nulls(rule: Rule) -> bool:
    if not rule.is_row_rule or len(rule.columns) != 1:
        return False
    return rule.sql == f"({identifier(rule.columns[0])} IS NULL)"


def _count_of_broken_rows(table: IcebergTable, rule: Rule) -> str:
    broken = f"count_if({table.broken_by(rule)})"
    if _share(rule):
        broken = f"100.0 * {broken} / greatest(count(1), 1)"
    return f"SELECT {broken} FROM {dotted(table.name)}"


def _is_enforced(rule: Rule) -> bool:
    """Return whether no stored row can break the rule: it quarantines or blocks without
    tolerance.
    """
    return rule.on_failure != "warn" and _share(rule) == 0


def _share(rule: Rule) -> float:
    """Return the share of stored rows that may break the rule; 0 if they are quarantined."""
    if rule.on_failure == "quarantine":
        return 0.0
    return rule.warns_above if rule.on_failure == "warn" else rule.fails_above or 0.0


def _tolerated(rule: Rule) -> Check:
    share = _share(rule)
    if share == 0:
        return {"mustBe": 0, "unit": "rows"}
    return {"mustBeLessOrEqualTo": _plain(round(100 * share, 10)), "unit": "percent"}


def _within(bounds: Bounds) -> Check:
    low, high = bounds.low, bounds.high
    if low is None:
        assert high is not None
        return {"mustBeLessOrEqualTo": _plain(high)}
    if high is None:
        return {"mustBeGreaterOrEqualTo": _plain(low)}
    if low == high:
        return {"mustBe": _plain(low)}
    return {"mustBeBetween": [_plain(low), _plain(high)]}


def _plain(number: Number) -> int | float:
    """Return a number for YAML; an integer without a decimal point."""
    return int(number) if number == int(number) else float(number)


def _dimension(rule: Rule) -> str | None:
    if rule.identifies_rows:
        return "uniqueness"
    if _counts_nulls(rule):
        return "completeness"
    if isinstance(rule, FreshRule):
        return "timeliness"
    if rule.read_columns:
        return "consistency"
    return "conformity" if rule.is_row_rule else None
