"""The profile of a table's columns, in the query that its rules are evaluated by: nulls and
distinct values.
"""

from collections.abc import Mapping
from typing import Any

from lakehouse.tables.quoting import counts, identifier
from lakehouse.tables.table import IcebergTable

ROWS = "measured_rows"
NULL_FRACTION, DISTINCT_COUNT = "null_fraction", "distinct_count"
_PREFIX = "__profile "


def profile_aggregates(table: IcebergTable, where: str = "true") -> dict[str, str]:
    """Return the aggregates that profile the declared columns, by name; none where none is
    declared `profiled`.

    Distinct values are estimated (HyperLogLog++, 5 % off at most as a rule), for which Spark
    keeps kilobytes and shuffles no row; an exact count would expand the rows by each column.

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
    """Return fractions and counts by metric, of a query's values; none where there was no
    row.
    """
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
