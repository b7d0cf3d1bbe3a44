"""Masked samples of failing rows."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.frames.frames import collect
from lakehouse.tables.masking import PERSON_SAMPLE_ROWS, redacted
from lakehouse.tables.quoting import identifier, literal
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

SAMPLE_ROWS = 20
Sample = tuple[Mapping[str, Any], ...]
_RULES, _RANK = "__rules", "__rank"


def samples_of(
    engine: Engine,
    table: IcebergTable,
    rows: "DataFrame",
    predicates: Mapping[str, str],
    failed_rows: Mapping[str, int],
    terms: Sequence[str],
) -> dict[str, Sample]:
    """Return, by name, at most 20 of the rows that match each predicate.

    The first matching rows contain frequent failures, without a scan of all rows; one more
    query over all rows finds rare ones.

    :param failed_rows: number of rows that match each predicate.
    :param terms: SQL terms to select.
    """
    if not predicates:
        return {}
    rows_by_rule: dict[str, list[Row]] = {}
    for row in _collected(_broken(rows, predicates, terms).limit(PERSON_SAMPLE_ROWS)):
        for name in row[_RULES]:
            rows_by_rule.setdefault(name, []).append(row)
    rare = {
        name: predicate
        for name, predicate in predicates.items()
        if len(rows_by_rule.get(name, ())) < min(SAMPLE_ROWS, failed_rows[name])
    }
    if rare:
        rows_by_rule |= _rare(_broken(rows, rare, terms))
    scanned = [row for broken in rows_by_rule.values() for row in broken]
    return {
        name: _shown(engine, table, broken[:SAMPLE_ROWS], scanned)
        for name, broken in rows_by_rule.items()
    }


def _broken(
    rows: "DataFrame", predicates: Mapping[str, str], terms: Sequence[str]
) -> "DataFrame":
    """Return the rows that match any predicate, with the names of the predicates."""
    names = ", ".join(
        f"CASE WHEN {predicate} THEN {literal(name)} END"
        for name, predicate in predicates.items()
    )
    any_of = f"({' OR '.join(predicates.values())})"
    return rows.where(any_of).selectExpr(*terms, f"array_compact(array({names})) AS {_RULES}")


def _rare(broken: "DataFrame") -> "dict[str, list[Row]]":
    from pyspark.sql.functions import explode

    ranked = broken.withColumn(_RULES, explode(_RULES)).selectExpr(
        "*", f"row_number() OVER (PARTITION BY {_RULES} ORDER BY {_RULES}) AS {_RANK}"
    )
    rows_by_rule: dict[str, list[Row]] = {}
    for row in _collected(ranked.where(f"{_RANK} <= {SAMPLE_ROWS}").drop(_RANK)):
        rows_by_rule.setdefault(row[_RULES], []).append(row)
    return rows_by_rule


def sample_of(engine: Engine, table: IcebergTable, broken: "DataFrame") -> Sample:
    """Return at most 20 of some rows as plain values, masked."""
    rows = _collected(
        broken.limit(PERSON_SAMPLE_ROWS if table.has_personal_data else SAMPLE_ROWS)
    )
    return _shown(engine, table, rows[:SAMPLE_ROWS], rows)


def _collected(rows: "DataFrame") -> "list[Row]":
    """Return few rows; with all times as text if one is outside of Python's range."""
    try:
        return collect(rows)
    except (ValueError, OverflowError):
        times = [name for name, kind in rows.dtypes if kind.startswith(("date", "timestamp"))]
        texts = {
            name: f"CAST({identifier(name)} AS string) AS {identifier(name)}" for name in times
        }
        return rows.selectExpr(
            *(texts.get(name, identifier(name)) for name in rows.columns)
        ).collect()


def _shown(
    engine: Engine, table: IcebergTable, rows: "Sequence[Row]", scanned: "Sequence[Row]"
) -> Sample:
    """Return masked rows.

    :param scanned: the rows in which identifiers of data subjects are distinguished.
    """
    shown = redacted(engine.masking_key, table, _values(rows), _values(scanned))
    return tuple({name: _plain(value) for name, value in row.items()} for row in shown)


def _values(rows: "Sequence[Row]") -> list[dict[str, Any]]:
    """Return rows as dictionaries."""
    values = []
    for row in rows:
        columns = row.asDict(recursive=True)
        columns.pop(_RULES, None)
        values.append(columns)
    return values


def _plain(value: Any) -> Any:
    """Convert a value to a type that Dagster metadata supports."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
