"""How much it takes for a rule to warn or to fail: shares of the rows that it counts, or bounds of what it measures."""

from fractions import Fraction
from typing import TYPE_CHECKING

from lakehouse.errors import DeclarationError

if TYPE_CHECKING:
    from lakehouse.iceberg.rules.rule import Rule


def share_of(fraction: float, rows: int) -> Fraction:
    """Return a share of some rows as it was written: 0.29 of 100 rows are 29, which floats fall short of."""
    return Fraction(str(fraction)) * rows


def check_thresholds(rule: "Rule") -> None:
    """Check that it is clear how much it takes for a rule to warn, and how much to fail.

    :raises DeclarationError: names the rule, what it says and what was expected.
    """
    given = {"warn_above": rule.warn_above, "fail_above": rule.fail_above}
    for name, share in given.items():
        if share is not None and rule.measure is not None:
            raise DeclarationError(
                f"rule {rule.name} has a {name}, and counts no rows; expected bounds.",
                next_step="Say warn_outside=(low, high) for values that people are only told of.",
            )
        if share is not None and not 0.0 <= share < 1.0:
            raise DeclarationError(f"rule {rule.name}: {name} is {share}; expected 0 to below 1.")
    if rule.on_failure == "warn" and (rule.fail_above is not None or rule.warn_outside is not None):
        raise DeclarationError(
            f"rule {rule.name} only warns, and has {'fail_above' if rule.warn_outside is None else 'warn_outside'}.",
            next_step="Say on_failure='block' where there is a point at which nothing shall be published.",
        )
    if rule.warn_outside is not None and rule.measure is None:
        raise DeclarationError(
            f"rule {rule.name} has warn_outside, and counts rows; expected warn_above, a share of the rows."
        )
    if rule.fails_above is not None and rule.warns_above > rule.fails_above:
        raise DeclarationError(
            f"rule {rule.name} warns above {rule.warns_above} of the rows, and fails above {rule.fails_above} of them; "
            "expected it to warn first.",
            next_step="Say fail_above=… with a greater share.",
        )
