"""Every rule on rows finds what plain Python would, whatever the values are."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.rules.aggregate_rules import mean, null_fraction, total
from lakehouse.iceberg.rules.audit import audit
from lakehouse.iceberg.rules.rows import (
    accepted,
    between,
    castable,
    dated,
    excluded,
    expression,
    length,
    not_after,
    not_blank,
    not_null,
    pattern,
)
from lakehouse.iceberg.rules.unique_and_references import ReferencesRule, references, unique
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Column, IcebergTable, Overwrite
from lakehouse_tests.examples import examples
from lakehouse_tests.frames import frame_of
from lakehouse_tests.iceberg.declarations import content

SCHEMA = "id bigint, n bigint, x double, s string, raw string"
COLUMNS = [Column(*part.split()) for part in SCHEMA.split(", ")]
FEW = [1, -(2**63), 0]
WORDS = ["", " \u3000\u200b", "a", "É", "it's ${HOME}", "\\d", "NULL"]
BIGINT = re.compile(r" *[+-]?[0-9]+ *")


@dataclass(frozen=True)
class Row:
    """A row as Python has it."""

    n: int | None
    x: float | None
    s: str | None
    raw: str | None


ROWS = st.lists(
    st.builds(
        Row,
        n=st.none()
        | st.sampled_from([*FEW, 2, 7, 2**63 - 1])
        | st.integers(-(2**63), 2**63 - 1),
        x=st.none()
        | st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 1.5, 5e-324, 1.8e308])
        | st.floats(),
        s=st.none()
        | st.sampled_from([*WORDS, "abc", "abc\n", "🍎", "é"])
        | st.text(max_size=6),
        raw=st.none()
        | st.sampled_from(["9223372036854775808", "+7", "0007"])
        | st.text(" +-0123456789e.", max_size=5),
    ),
    max_size=20,
)


def is_outside(value: Any, low: Any, high: Any) -> bool:
    if value is None:
        return False
    if value != value:
        return True
    return (low is not None and value < low) or (high is not None and value > high)


def is_seen(character: str) -> bool:
    return unicodedata.category(character) not in ("Zs", "Zl", "Zp", "Cc", "Cf")


ORACLE = {
    not_null("s"): lambda row: row.s is None,
    not_null("x"): lambda row: row.x is None,
    not_blank("s"): lambda row: row.s is not None and not any(map(is_seen, row.s)),
    accepted("s", WORDS): lambda row: row.s is not None and row.s not in WORDS,
    excluded("s", WORDS): lambda row: row.s in WORDS,
    accepted("n", FEW): lambda row: row.n is not None and row.n not in FEW,
    between("n", -5, 2**62): lambda row: is_outside(row.n, -5, 2**62),
    between("x", 1.5): lambda row: is_outside(row.x, 1.5, None),
    between("x", None, 1.5, name="x_at_most"): lambda row: is_outside(row.x, None, 1.5),
    between("s", "a", "é"): lambda row: is_outside(row.s, "a", "é"),
    length("s", 1, 3): lambda row: row.s is not None and not 1 <= len(row.s) <= 3,
    length("s", None, 1, name="s_at_most"): lambda row: row.s is not None and len(row.s) > 1,
    pattern("s", "[a-c]+|.?"): lambda row: (
        row.s is not None and not re.fullmatch("[a-c]+|[^\n\r\x85\u2028\u2029]?", row.s)
    ),
    expression("n_not_negative", "n >= 0"): lambda row: row.n is not None and row.n < 0,
    castable("raw", "bigint"): lambda row: row.raw is not None and not is_bigint(row.raw),
}
SHARES = {
    null_fraction("s", at_most=0.25): lambda row: row.s is None,
    null_fraction("x", at_most=0.5, warn_above=0.1): lambda row: row.x is None,
}
PARTNERS = [
    (1, math.nan, "a"),
    (1, 0.0, "É"),
    (0, 1.5, ""),
    (-(2**63), math.inf, "it's ${HOME}"),
    (None, None, None),
]
COUNTED = {"on_failure": "warn", "warn_above": 0.99}
KEYS = {
    unique("x", **COUNTED): ["x"],
    unique("s", **COUNTED): ["s"],
    unique("n", "s", **COUNTED): ["n", "s"],
    references("x", "silver.partners", **COUNTED): ["x"],
    references(["n", "s"], "silver.partners", **COUNTED): ["n", "s"],
}
"""Rules on keys, without the samples that a query each would be made for."""
FIGURES = {
    total("n", -5, 2**62): lambda row: row.n,
    total("x", -1.5, 2): lambda row: row.x,
    mean("n", -5, 2**62): lambda row: row.n,
    mean("x", -1.5, 2): lambda row: row.x,
}


def is_bigint(text: str) -> bool:
    return bool(BIGINT.fullmatch(text)) and -(2**63) <= int(text) < 2**63


def frame(spark: SparkSession, rows: list[Row]):
    return frame_of(
        spark, SCHEMA, [(at, row.n, row.x, row.s, row.raw) for at, row in enumerate(rows)]
    )


def oracle(rows: list[Row]) -> dict[str, int]:
    return {rule.name: sum(map(breaks, rows)) for rule, breaks in ORACLE.items()}


@pytest.mark.long
@settings(
    max_examples=examples(10, 25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(rows=[])
@given(rows=ROWS)
def test_a_rule_counts_what_python_counts(embedded_engine: Engine, rows: list[Row]) -> None:
    table = IcebergTable("silver.any", "Anything.", COLUMNS, Overwrite())
    found = audit(
        embedded_engine, table, frame(embedded_engine.spark, rows), list(ORACLE)
    ).results
    assert {result.rule.name: result.failed_rows for result in found} == oracle(rows)


def as_key(values: Sequence[Any]) -> tuple[Any, ...] | None:
    """Return values as Spark compares keys, where NaN is one value and -0.0 is 0.0; None where
    one is NULL.
    """
    plain = tuple(
        "NaN" if value != value else value + 0 if isinstance(value, float) else value
        for value in values
    )
    return None if None in values else plain


def broken_keys(rows: list[Row]) -> dict[str, int]:
    at = {"n": 0, "x": 1, "s": 2}
    found = {}
    for rule, names in KEYS.items():
        keys = Counter(as_key([getattr(row, name) for name in names]) for row in rows)
        del keys[None]
        partners = {as_key([partner[at[name]] for name in names]) for partner in PARTNERS}
        lonely = sum(count for key, count in keys.items() if key not in partners)
        found[rule.name] = (
            lonely
            if isinstance(rule, ReferencesRule)
            else sum(count - 1 for count in keys.values())
        )
    return found


def is_figure(found: Any, function: str, values: list[Any]) -> bool:
    """Whether Spark's figure is that of all values, as far as floats can tell."""
    if not values:
        return found is None
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        return not math.isfinite(found)
    exact = sum(map(Fraction, values)) / (len(values) if function == "avg" else 1)
    if function == "sum" and isinstance(values[0], int):
        return found == exact
    largest = max(abs(Fraction(value)) for value in values)
    rounding = largest * len(values) * Fraction(1, 10**14)
    # The mean of the smallest may be less than a double holds, and the sum that a mean is made of
    # more.
    return largest > 1e300 or abs(Fraction(found) - exact) <= rounding + Fraction(math.ulp(0.0))


@pytest.mark.long
@settings(
    max_examples=examples(4, 8),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(
    rows=[Row(n, -0.0, "a", None) for n in (2**63 - 1, 2**63 - 1, 1)]
    + [Row(None, math.nan, None, None)]
)
@example(rows=[Row(None, -0.0, None, None), Row(None, math.ulp(0.0), None, None)])
@given(rows=ROWS)
def test_shares_keys_and_figures_are_those_of_python(
    embedded_engine: Engine, rows: list[Row]
) -> None:
    spark = embedded_engine.spark
    partners = frame_of(spark, "n bigint, x double, s string", PARTNERS)
    found = audit(
        embedded_engine,
        IcebergTable("silver.any", "Anything.", COLUMNS, Overwrite()),
        frame(spark, rows),
        [*SHARES, *KEYS, *FIGURES],
        read_other=lambda _: partners,
    ).results
    results = {result.rule.name: result for result in found}
    for rule, breaks in SHARES.items():
        failed = sum(map(breaks, rows))
        assert (results[rule.name].failed_rows, results[rule.name].passed) == (
            failed,
            not rows or Fraction(failed, len(rows)) <= Fraction(str(rule.warns_above)),
        )
    assert {
        name: results[name].failed_rows for name in (rule.name for rule in KEYS)
    } == broken_keys(rows)
    for rule, value_of in FIGURES.items():
        values = [value for value in map(value_of, rows) if value is not None]
        assert is_figure(results[rule.name].value, rule.function, values), rule.name
        assert results[rule.name].passed == (
            not values or rule.bounds.contains(results[rule.name].value)
        )


@pytest.mark.long
@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=ROWS.filter(len))
def test_clean_and_quarantined_rows_are_the_whole(
    embedded_engine: Engine, rows: list[Row]
) -> None:
    table = IcebergTable(
        f"silver.t{abs(hash(tuple(map(repr, rows)))):x}",
        "Anything.",
        [
            Column("id", "bigint"),
            Column("n", "bigint"),
            Column("x", "double"),
            Column("s", "string"),
            Column("raw", "bigint"),
        ],
        write=Overwrite(),
        rules=list(ORACLE),
    )
    write(embedded_engine, table, lambda: frame(embedded_engine.spark, rows))
    refused = {
        at for at, row in enumerate(rows) if any(breaks(row) for breaks in ORACLE.values())
    }
    assert table.quarantine is not None
    held = content(embedded_engine, table.quarantine.name)
    assert sorted(int(row[0]) for row in held) == sorted(refused)
    assert sorted(row[0] for row in content(embedded_engine, table.name)) == sorted(
        set(range(len(rows))) - refused
    )


def test_a_day_is_from_one_on_to_that_of_a_moment_in_a_time_zone(spark: SparkSession) -> None:
    days = (
        "('2024-01-01', 1), ('2023-12-31', 2), ('2026-03-02', 3), ('2026-03-03', 4), (NULL, 5)"
    )
    rows = spark.sql(
        "SELECT CAST(d AS date) AS d, id, TIMESTAMP'2026-03-01 23:00:00Z' AS `its moment`"
        f" FROM VALUES {days} AS v(d, id)"
    )
    rule = dated("d", since="2024-01-01", until="its moment", time_zone="Asia/Kuala_Lumpur")
    assert rule.name == "dated_d"
    assert rule.description == "d is from 2024-01-01 to the day of its moment"
    assert sorted(row.id for row in rows.where(rule.predicate()).collect()) == [2, 4]


def test_a_moment_may_be_some_days_after_another(spark: SparkSession) -> None:
    moments = (
        "('2026-03-02 12:00:00', 1), ('2026-03-02 12:00:01', 2), ('9999-12-31 00:00:00', 3),"
        " (NULL, 4)"
    )
    ingested = "TIMESTAMP'2026-03-01 12:00:00' AS ingested"
    rows = spark.sql(
        f"SELECT CAST(at AS timestamp) AS at, id, {ingested} FROM VALUES {moments} AS v(at, id)"
    )
    rule = not_after("at", "ingested", days=1)
    assert rule.description == "at is at most 1 day after ingested"
    assert sorted(row.id for row in rows.where(rule.predicate()).collect()) == [2, 3]
