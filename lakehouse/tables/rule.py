"""One thing that must hold of a table, as a value."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from lakehouse.errors import DeclarationError
from lakehouse.tables.bounds import ANYTHING, Bounds, Level, Number
from lakehouse.tables.casts import cast_sql
from lakehouse.tables.measures import Aggregate, Difference, Measure
from lakehouse.tables.quoting import identifier

OnFailure = Literal["quarantine", "block", "warn"]
Kind = Literal["rows", "keys", "figures", "reconciliation", "metadata"]
"""What a rule is evaluated by: a predicate, a join or grouping, an aggregate, a look at two
tables, no data at all.
"""
_NAME = re.compile(r"^[A-Za-z0-9_]+$")


def share_of(fraction: float, rows: int) -> Fraction:
    """Return a share of some rows as it was written: 0.29 of 100 rows are 29, which floats fall
    short of.
    """
    return Fraction(str(fraction)) * rows


@dataclass(frozen=True)
class References:
    """The columns of another table that hold each value which the columns of a rule may
    have.
    """

    table: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Rule:
    """One thing that must hold of a table, and what happens where it does not.

    What is broken is counted in rows, or a `measure` is taken that has to lie within `bounds`.
    `violated_by` is the SQL predicate of the rows that break a row rule, over the table's typed
    columns; it is None for `castable`, whose predicate compares what was delivered with what it
    became (see `castable_as`).

    `on_failure` says what happens: the rows go to the quarantine, nothing is published, or
    people are told. How much it takes is said in shares of the rows: more than `warn_above` and
    people are told, more than `fail_above` and nothing is published. Left out, any row is too
    much for what `on_failure` says. A measure has `warn_outside` for the first.
    """

    name: str
    description: str
    columns: tuple[str, ...]
    on_failure: OnFailure
    violated_by: str | None = None
    unique_on: tuple[str, ...] = ()
    castable_as: str | None = None
    time_zone: str = "UTC"
    """Where delivered moments without an offset were written (`castable`)."""
    references: References | None = None
    measure: Measure | None = None
    bounds: Bounds = ANYTHING
    warn_outside: Bounds | None = None
    warn_above: float | None = None
    fail_above: float | None = None

    def __post_init__(self) -> None:
        if not _NAME.match(self.name):
            raise DeclarationError(
                f"rule name {self.name!r} has characters that Dagster's check names lack; "
                "expected letters, digits and underscores.",
                next_step="Give the rule a name=… of its own.",
            )
        if self.on_failure not in ("quarantine", "block", "warn"):
            raise DeclarationError(
                f"rule {self.name}: on_failure is {self.on_failure!r}; expected quarantine,"
                " block or warn."
            )
        if self.on_failure == "quarantine" and not self.is_row_rule:
            raise DeclarationError(
                f"rule {self.name} is about the whole table, and no single row can be"
                " quarantined for it; expected on_failure block or warn."
            )
        _check_thresholds(self)

    @property
    def kind(self) -> Kind:
        """What it is evaluated by."""
        if self.measure is None:
            return "keys" if self.unique_on or self.references else "rows"
        if isinstance(self.measure, Aggregate):
            return "figures"
        return "reconciliation" if isinstance(self.measure, Difference) else "metadata"

    @property
    def asks_rows(self) -> bool:
        """Whether the table's own rows answer it, and neither metadata nor another table's
        figure.
        """
        return self.kind in ("rows", "figures", "keys")

    @property
    def is_row_rule(self) -> bool:
        """Whether a single row can break it."""
        return self.kind == "rows"

    @property
    def can_block(self) -> bool:
        """Whether it can keep a write from being published."""
        return self.on_failure == "block" or self.fail_above is not None

    @property
    def tolerates_nothing(self) -> bool:
        """Whether a single row that breaks it keeps a write from being published."""
        return self.measure is None and self.fails_above == 0

    @property
    def warns_above(self) -> float:
        """Share of the rows that may break it without a word."""
        if self.warn_above is not None:
            return self.warn_above
        return (self.fails_above or 0.0) if self.on_failure == "block" else 0.0

    @property
    def fails_above(self) -> float | None:
        """Share of the rows that may break it without keeping the others back; None where no
        share does.
        """
        if self.fail_above is not None:
            return self.fail_above
        return 0.0 if self.on_failure == "block" else None

    def level_of_rows(self, failed_rows: int, total_rows: int) -> Level:
        """Return what comes of it that some rows of all break it."""
        if self.fails_above is not None and failed_rows > share_of(
            self.fails_above, total_rows
        ):
            return "fails"
        return "warns" if failed_rows > share_of(self.warns_above, total_rows) else "holds"

    def level_of_value(self, value: Number | None) -> Level:
        """Return what comes of a measure; None, where there was nothing to measure, holds."""
        if value is None:
            return "holds"
        if not self.bounds.hold(value):
            return "fails" if self.on_failure == "block" else "warns"
        return "warns" if self.warn_outside and not self.warn_outside.hold(value) else "holds"

    @property
    def test(self) -> str:
        """What is looked at, in SQL as far as there is some."""
        if self.measure is not None:
            return f"{self.measure} {self.bounds}"
        if self.references:
            return (
                f"({', '.join(self.columns)}) in {self.references.table}"
                f" ({', '.join(self.references.columns)})"
            )
        return f"unique({', '.join(self.unique_on)})" if self.unique_on else self.predicate()

    def predicate(
        self, delivered: Callable[[str], str] = lambda column: identifier(column)
    ) -> str:
        """Return the SQL predicate, never NULL, of the rows that break this rule.

        :param delivered: gives the SQL of a column as it was delivered, before it was cast.
        """
        if self.castable_as is not None:
            (column,) = self.columns
            raw = delivered(column)
            return f"({raw} IS NOT NULL AND {self.cast_sql(raw)} IS NULL)"
        if self.violated_by is None:
            raise DeclarationError(
                f"rule {self.name} is about the whole table and has no predicate on rows."
            )
        return self.violated_by

    def cast_sql(self, raw: str) -> str:
        """Return SQL for a delivered value in the type that `castable` names; NULL where it
        cannot be read as one.
        """
        assert self.castable_as is not None
        return cast_sql(raw, self.castable_as, self.time_zone)


def _check_thresholds(rule: Rule) -> None:
    """Check that it is clear how much it takes for a rule to warn, and how much to fail.

    :raises DeclarationError: names the rule, what it says and what was expected.
    """
    given = {"warn_above": rule.warn_above, "fail_above": rule.fail_above}
    for name, share in given.items():
        if share is not None and rule.measure is not None:
            raise DeclarationError(
                f"rule {rule.name} has a {name}, and counts no rows; expected bounds.",
                next_step=(
                    "Say warn_outside=(low, high) for values that people are only told of."
                ),
            )
        if share is not None and not 0.0 <= share < 1.0:
            raise DeclarationError(
                f"rule {rule.name}: {name} is {share}; expected 0 to below 1."
            )
    if rule.on_failure == "warn" and (
        rule.fail_above is not None or rule.warn_outside is not None
    ):
        raise DeclarationError(
            f"rule {rule.name} only warns, and has"
            f" {'fail_above' if rule.warn_outside is None else 'warn_outside'}.",
            next_step=(
                "Say on_failure='block' where there is a point at which nothing shall be"
                " published."
            ),
        )
    if rule.warn_outside is not None and rule.measure is None:
        raise DeclarationError(
            f"rule {rule.name} has warn_outside, and counts rows; expected warn_above, a share"
            " of the rows."
        )
    if rule.fails_above is not None and rule.warns_above > rule.fails_above:
        raise DeclarationError(
            f"rule {rule.name} warns above {rule.warns_above} of the rows, and fails above"
            f" {rule.fails_above} of them; expected it to warn first.",
            next_step="Say fail_above=… with a greater share.",
        )


def made(
    kind: str,
    columns: tuple[str, ...],
    description: str,
    on_failure: OnFailure,
    options: dict[str, object],
    **how: object,
) -> Rule:
    """Return a rule named after its kind and columns, unless the options name it."""
    rule = Rule(
        name=str(options.pop("name", None) or "_".join((kind, *columns))),
        description=description,
        columns=columns,
        on_failure=on_failure,
        **how,  # type: ignore[arg-type]
    )
    return replace(rule, **options) if options else rule  # type: ignore[arg-type]
