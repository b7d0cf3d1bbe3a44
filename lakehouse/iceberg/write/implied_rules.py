"""Rules that a write adds to the declared ones: they follow from the types of its DataFrame."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from lakehouse.iceberg.rules.rows import RowRule
from lakehouse.tables.castable_rule import castable_if_fits
from lakehouse.tables.table import IcebergTable


@dataclass(frozen=True, kw_only=True)
class KeyTextRule(RowRule):
    """The rule that rows of one key have one text for it: `+49` and `49` are both 49.

    The selection of versions finds the rows that break it, since it compares rows.
    """

    is_declared: ClassVar[bool] = False


def with_fitting_rules(table: IcebergTable, columns: Sequence[str]) -> IcebergTable:
    """Return the table with a rule for each column whose values may not fit its type; as it is
    if it has no quarantine.
    """
    if not table.quarantining_rules:
        return table
    rules = [
        castable_if_fits(name, table.column(name).type)
        for name in columns
        if name not in table.casts
    ]
    return replace(table, rules=(*table.rules, *rules)) if rules else table


def with_key_text_rule(table: IcebergTable, columns: Sequence[str]) -> IcebergTable:
    """Return the table with the rule on the key columns that are cast from text."""
    if not columns or key_text_rule(table):
        return table
    listed = ", ".join(columns)
    rule = KeyTextRule(
        name="one_text_per_key",
        description=(
            f"versions of a row have the same text for {listed}; declare {listed} as string, or"
            " cast it in the function if the texts mean the same key"
        ),
        columns=tuple(columns),
        on_failure="block",
        violated_by="false",
    )
    return replace(table, rules=(*table.rules, rule))


def key_text_rule(table: IcebergTable) -> KeyTextRule | None:
    """Return the rule on key texts; None of a table without it."""
    return next((rule for rule in table.row_rules if isinstance(rule, KeyTextRule)), None)
