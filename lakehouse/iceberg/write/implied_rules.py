"""Rules that follow from the types of a DataFrame."""

from collections.abc import Sequence
from dataclasses import replace

from lakehouse.tables.castable_rule import castable_if_fits
from lakehouse.tables.table import IcebergTable


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
