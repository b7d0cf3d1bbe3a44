"""Column profile, computed in the query of the rules: NULL fractions and distinct counts."""

from collections.abc import Mapping
from typing import Any

from lakehouse.tables.quoting import counts, identifier
from lakehouse.tables.table import IcebergTable

ROWS = "measured_rows"
NULL_FRACTION, DISTINCT_COUNT = "null_fraction", "distinct_count"
_PREFIX = "__profile "


def profile_aggregates(table: IcebergTable, where: str = "true") -> dict[str, str]:
    """Return the aggregates for columns declared `profiled`, by name.

    Distinct values are estimated (HyperLogLog++, error usually below 5 %), which needs
    kilobytes and no shuffle; an exact count would multiply the rows by the columns.

    :param where: a SQL predicate on the rows to profile.
    """
    columns = table.profiled_columns
    aggregates = {f"{_PREFIX}{ROWS}": counts(where)} if columns else {}
    for name in columns:
        quoted = identifier(name)
        aggregates[f"{_PREFIX}{NULL_FRACTION}.{name}"] = counts(f"{where} AND {quoted} IS NULL")
        aggregates[f"{_PREFIX}{DISTINCT_COUNT}.{name}"] = (
            f"approx_count_distinct(CASE WHEN {where} THEN {quoted} END)"
        )
    return aggregates


def profile_of(values: Mapping[str, Any]) -> dict[str, float]:
    """Return fractions and counts by metric, from a query result; empty without rows."""
    metrics = {
        name.removeprefix(_PREFIX): value
        for name, value in values.items()
        if name.startswith(_PREFIX)
    }
    rows = metrics.get(ROWS, 0)
    if not rows:
        return {}
    return {
        name: value / rows if name.startswith(NULL_FRACTION) else value
        for name, value in metrics.items()
    }
