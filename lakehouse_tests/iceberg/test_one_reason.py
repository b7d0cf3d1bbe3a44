"""A value that cannot be read has one reason, and a missing one another. No JVM: the predicates."""

from typing import Any

import pytest

from lakehouse.iceberg.rules.rows import between, castable, not_null
from lakehouse.iceberg.write.prepared_frame import PreparedFrame
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import Column, IcebergTable, Overwrite

pytestmark = pytest.mark.unit
TYPED = "(`amount` IS NULL)"
DELIVERED = "(`__delivered__amount` IS NULL AND `amount` IS NULL)"


def predicate(*rules: Rule, delivered: bool = True) -> str:
    """The predicate of the rows that break the first rule."""
    columns = [Column("amount", "int"), Column("note", "string")]
    table = IcebergTable("silver.t", "T.", columns, Overwrite(), rules=rules)
    frame: Any = None
    raw = {"amount": "__delivered__amount"} if delivered else {}
    names = (*table.column_names, *raw.values())
    return PreparedFrame(table, frame, raw, names).violation(rules[0])


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([not_null("amount"), castable("amount", "int")], DELIVERED),
        ([not_null("amount", on_failure="block"), castable("amount", "int")], TYPED),
        ([not_null("amount"), castable("amount", "int", on_failure="warn")], TYPED),
        ([not_null("note"), castable("amount", "int")], "(`note` IS NULL)"),
    ],
)
def test_what_castable_rejects_is_not_missing_too(rules, expected):
    assert predicate(*rules) == expected


def test_a_column_that_was_not_cast_is_judged_as_it_is():
    rules = (not_null("amount"), castable("amount", "int"))
    assert predicate(*rules, delivered=False) == TYPED


def test_other_rules_are_of_the_typed_value():
    assert "__delivered__" not in predicate(between("amount", low=0), castable("amount", "int"))
