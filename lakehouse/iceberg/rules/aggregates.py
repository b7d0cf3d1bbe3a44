"""What is measured of a table's columns, in the query that its rules are evaluated by: nulls
and distinct values.
"""

from collections.abc import Mapping
from typing import Any

from lakehouse.tables.quoting import counts, identifier
from lakehouse.tables.table import IcebergTable

ROWS = "measured_rows"
NULL_FRACTION, DISTINCT_COUNT = "null_fraction", "distinct_count"
_OF = "__measured "


def measures(table: IcebergTable, where: str = "true") -> dict[str, str]:
    """Return the aggregates that measure the declared columns, by name; none where none is
    declared `profiled`.

    Distinct values are estimated (HyperLogLog++, 5 % off at most as a rule), for which Spark
    keeps kilobytes and shuffles no row; an exact count would expand the rows by each column.

    :param where: a SQL predicate on the rows to measure.
    """
    columns = table.profiled_columns
    counted = {f"{_OF}{ROWS}": counts(where)} if columns else {}
    for name in columns:
        quoted = identifier(name)
        counted[f"{_OF}{NULL_FRACTION}.{name}"] = counts(f"{where} AND {quoted} IS NULL")
        counted[f"{_OF}{DISTINCT_COUNT}.{name}"] = (
            f"approx_count_distinct(CASE WHEN {where} THEN {quoted} END)"
        )
    return counted


def measured(found: Mapping[str, Any]) -> dict[str, float]:
    """Return what the query found, as fractions and counts by metric; nothing where there was
    no row.
    """
    values = {
        name.removeprefix(_OF): value for name, value in found.items() if name.startswith(_OF)
    }
    rows = values.get(ROWS, 0)
    if not rows:
        return {}
    return {
        name: value / rows if name.startswith(NULL_FRACTION) else value
        for name, value in values.items()
    }
