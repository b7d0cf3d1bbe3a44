"""Check at import time that a table's rules can be evaluated."""

from lakehouse.errors import DeclarationError
from lakehouse.tables.declaration import TableDeclaration

REFUSED_SHARE = "refused_share"
"""The name of the check for the share of rejected rows."""


def check_rules(table: TableDeclaration) -> None:
    """Check the names of rules and their requirements."""
    names = [rule.name for rule in table.rules]
    if len(set(names)) < len(names):
        raise DeclarationError(
            f"{table.name} has rules of the same name: {', '.join(sorted(names))}.",
            next_step="Give one of them a name=… of its own.",
        )
    _check_refused_share(table)
    for rule in table.rules:
        rule.check(table)


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
            f"{table.name} has max_refused_share, and none of its rules quarantines rows.",
            next_step="Use on_failure='quarantine' in a rule on rows, or leave the share out.",
        )
