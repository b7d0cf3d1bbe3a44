"""What rules ask of a table that its declaration cannot give, said at import rather than at the
first write.
"""

from lakehouse.errors import DeclarationError
from lakehouse.tables import types
from lakehouse.tables.declaration import TableDeclaration
from lakehouse.tables.measures import Aggregate, Difference
from lakehouse.tables.refused_share import NAME as REFUSED_SHARE
from lakehouse.tables.rule import Rule

_NUMBERS = types.WHOLE_NUMBERS | {"float", "double"}


def check_rules(table: TableDeclaration) -> None:
    """Check names of rules, and that figures are of numbers that may be shown.

    :raises DeclarationError: names the table, the rule, what it holds and what was expected.
    """
    names = [rule.name for rule in table.rules]
    if len(set(names)) < len(names):
        raise DeclarationError(
            f"{table.name} has rules of the same name: {', '.join(sorted(names))}.",
            next_step="Give one of them a name=… of its own.",
        )
    _check_refused_share(table)
    for rule in table.rules:
        if isinstance(rule.measure, Aggregate):
            _check_figure(table, rule, rule.measure.column)
        if (
            isinstance(rule.measure, Difference)
            and table.overwritten_by
            and not rule.measure.by
        ):
            raise DeclarationError(
                f"{table.name}: rule {rule.name} compares whole tables, and a run writes"
                f" partitions of {table.overwritten_by}.",
                next_step=(
                    f"Say by=…, the column of {rule.measure.table} that has the same"
                    " partitions."
                ),
            )


def _check_refused_share(table: TableDeclaration) -> None:
    share = table.max_refused_share
    if any(rule.name == REFUSED_SHARE for rule in table.rules):
        raise DeclarationError(
            f"{table.name} has a rule named {REFUSED_SHARE}, as is the check of how many rows"
            " are refused.",
            next_step="Give the rule another name=….",
        )
    if share is None:
        return
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise DeclarationError(
            f"{table.name}: max_refused_share is {share!r}; expected a share from 0 to 1."
        )
    if not table.quarantining_rules:
        raise DeclarationError(
            f"{table.name} has max_refused_share, and no rule of it refuses rows.",
            next_step="Say on_failure='quarantine' of a rule on rows, or leave the share out.",
        )


def _check_figure(table: TableDeclaration, rule: Rule, column: str) -> None:
    column_type = types.parse(table.column(column).type)
    if not isinstance(column_type, types.Decimal) and str(column_type) not in _NUMBERS:
        raise DeclarationError(
            f"{table.name}: rule {rule.name} is about {column}, which is {column_type};"
            " expected a column of numbers."
        )
    if column in table.masked_columns:
        what = "is personal" if column in table.personal_columns else "stands for a person"
        raise DeclarationError(
            f"{table.name}: rule {rule.name} is about {column}, which {what}: of few rows it"
            " tells them.",
            next_step="Say what must hold of each value, with between(…).",
        )
