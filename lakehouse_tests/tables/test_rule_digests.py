"""The digest of what decides a table's rows, with each kind of rule: as long as it stays the same,
no partition is computed again.
"""

from datetime import timedelta

import pytest

from lakehouse.iceberg.rules.aggregate_rules import mean, null_fraction, total
from lakehouse.iceberg.rules.reconciliation import reconciles
from lakehouse.iceberg.rules.rows import (
    accepted,
    between,
    castable,
    excluded,
    expression,
    length,
    not_after,
    not_blank,
    not_null,
    pattern,
)
from lakehouse.iceberg.rules.size_schema_and_freshness import (
    fresh,
    row_count,
    row_count_change,
    schema_as_declared,
)
from lakehouse.iceberg.rules.unique_and_references import references, unique
from lakehouse.tables.table import Column, IcebergTable, Merge

COLUMNS = [
    Column("id", "bigint"),
    Column("s", "string"),
    Column("v", "double"),
    Column("d", "date"),
    Column("e", "date"),
]
RULES = {
    castable("d", "date", time_zone="Asia/Tokyo"): "fc6b6556e621e97d",
    not_null("id", fail_above=0.1): "bf78e3cdecd433eb",
    not_blank("s"): "f71eea83886f0ca4",
    excluded("s", ["a", "it's"]): "0058bf860e2d6d29",
    accepted(
        "v", [1, 2.5], on_failure="block", warn_above=0, fail_above=0.01
    ): "9746486fbeecf22d",
    between("v", 1): "aba4ad7a62ba35ca",
    length("s", 1, 5): "914624304fa1a794",
    pattern("s", r"\d+"): "e73123a9cc918958",
    not_after("d", "e", days=2): "0949ce369cbc3e41",
    expression("v_is_id", "v = id", columns=["v", "id"]): "fbe1a9bde4c98c0b",
    unique("id", "d"): "932a8a3333e0204b",
    references(["id", "d"], "silver.b", ["x", "y"]): "2dd2702871421ff7",
    null_fraction("s", at_most=0.05): "0890bea9414f4ba1",
    mean("v", 1, 3, warn_outside=(2, None)): "745c4944395987ae",
    total("id", high=10): "2b740b51a8b3068a",
    reconciles(
        "silver.b", here="sum(v)", there="sum(w)", at_most=0.1, warn_above=0.01
    ): "583a6b4cf50e5884",
    row_count(1, 100): "0976999e5eeb91fd",
    row_count_change(0.5, -0.5, against=timedelta(days=7)): "8d000d23a1ba408a",
    row_count_change(0.5, against=2, name="since_two_writes"): "d4f581089a8ee6bc",
    schema_as_declared(): "2af8f6c031b63411",
    fresh(within=timedelta(hours=36), on_failure="block"): "3e6f6a0c8b6a5b63",
}


def digest(*rules):
    return IcebergTable("silver.a", "", COLUMNS, Merge(on="id"), rules=rules).declaration_hash


@pytest.mark.parametrize(
    ("rule", "expected"), RULES.items(), ids=lambda value: getattr(value, "name", "")
)
def test_of_a_rule_is_what_it_was(rule, expected) -> None:
    assert digest(rule) == f"rows:{expected}"
