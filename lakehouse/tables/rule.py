"""One thing that must hold of a table, as a value; each kind of it is a class in
`lakehouse.iceberg.rules`.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol, Self, TypedDict

from lakehouse.errors import DeclarationError
from lakehouse.tables.bounds import Bounds, Level, Number, Outside
from lakehouse.tables.casts import Cast
from lakehouse.tables.quoting import identifier

OnFailure = Literal["quarantine", "block", "warn"]
_NAME = re.compile(r"^[A-Za-z0-9_]+$")


class FailureOptions(TypedDict, total=False):
    """What may be said of any rule where it is declared."""

    description: str
    """What must hold, in words; left out, the rule words it."""
    on_failure: OnFailure
    """What happens where it does not hold: the rows go to the quarantine, nothing is published,
    or people are told.
    """


class ThresholdOptions(FailureOptions, total=False):
    """What may be said of a rule that counts rows."""

    warn_above: float | None
    """Share of the rows, from 0 to below 1, above which people are told; left out, any row, and
    of a rule that blocks none before it does.
    """
    fail_above: float | None
    """Share of the rows, from 0 to below 1, above which nothing is published; left out, any row
    of a rule that blocks, and none of one that quarantines.
    """


class CountOptions(ThresholdOptions, total=False):
    """What may be said of a rule that counts rows, and is named after its columns if left
    out.
    """

    name: str
    """The name of its check: letters, digits and underscores."""


class BoundOptions(FailureOptions, total=False):
    """What may be said of a rule with bounds; within them, people are told of values outside of
    narrower ones.
    """

    name: str
    """The name of its check: letters, digits and underscores."""
    warn_outside: Outside | None
    """Narrower bounds, such as `(50, 500)` or `(None, 500)`, outside of which people are told."""


class _Column(Protocol):
    @property
    def type(self) -> str: ...


class DeclaringTable(Protocol):
    """What a rule may ask of the table that declares it."""

    @property
    def name(self) -> str: ...

    @property
    def overwritten_by(self) -> str | None: ...

    @property
    def personal_columns(self) -> frozenset[str]: ...

    @property
    def masked_columns(self) -> frozenset[str]: ...

    def column(self, name: str) -> _Column: ...


def share_of(fraction: float, rows: int) -> Fraction:
    """Return a share of some rows as it was written: 0.29 of 100 rows are 29, which floats fall
    short of.
    """
    return Fraction(str(fraction)) * rows


@dataclass(frozen=True)
class Rule(ABC):
    """One thing that must hold of a table, and what happens where it does not.

    What breaks it is counted in rows, or it has `bounds`, and a value is evaluated that has to
    lie within them.

    `on_failure` says what happens: the rows go to the quarantine, nothing is published, or
    people are told. How much it takes is said in shares of the rows: more than `warn_above` and
    people are told, more than `fail_above` and nothing is published. Left out, any row is too
    much for what `on_failure` says. A rule with bounds has `warn_outside` for the first.
    """

    name: str
    description: str
    columns: tuple[str, ...]
    on_failure: OnFailure = "block"
    bounds: Bounds | None = None
    warn_outside: Bounds | None = None
    warn_above: float | None = None
    fail_above: float | None = None

    is_row_rule: ClassVar[bool] = False
    """Whether a single row can break it; it has a `predicate` then."""
    identifies_rows: ClassVar[bool] = False
    """Whether its columns tell each row from all others where it holds."""
    is_declared: ClassVar[bool] = True
    """Whether it is part of the table's declaration; a write adds the others itself."""
    warns_as_error: ClassVar[bool] = False
    """Whether its check is an ERROR also where it lets the rows be published; outside of
    `warn_outside` alone it is a WARN.
    """

    @classmethod
    def declare(
        cls,
        kind: str,
        columns: tuple[str, ...],
        description: str,
        options: Mapping[str, Any],
        **fields: Any,
    ) -> Self:
        """Return a rule that is named after its kind and columns, unless the options name it.

        :param options: what the caller of a constructor says; it has the last word.
        """
        named = {"name": "_".join((kind, *columns)), "description": description}
        rule = {**named, "columns": columns, **fields, **options}
        if isinstance(rule.get("warn_outside"), tuple):
            rule["warn_outside"] = Bounds(*rule["warn_outside"])
        return cls(**rule)

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
    @abstractmethod
    def sql(self) -> str:
        """What is evaluated, in SQL as far as there is some; a part of `declaration_hash`."""

    @property
    def cast(self) -> Cast | None:
        """How its column is read from what is delivered, where the rule says so."""
        return None

    @property
    def read_columns(self) -> Mapping[str, Sequence[str]]:
        """By other table that it reads, the columns of it that it names."""
        return {}

    def check(self, table: DeclaringTable) -> None:  # noqa: B027  most rules ask nothing
        """Check that the table that declares it can be evaluated by it.

        :raises DeclarationError: names the table, the rule, and what was expected.
        """

    @property
    def can_block(self) -> bool:
        """Whether it can keep a write from being published."""
        return self.on_failure == "block" or self.fail_above is not None

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
        """Return what comes of a value; None, where there was nothing to evaluate, holds."""
        if value is None:
            return "holds"
        if self.bounds and not self.bounds.hold(value):
            return "fails" if self.on_failure == "block" else "warns"
        return "warns" if self.warn_outside and not self.warn_outside.hold(value) else "holds"

    def predicate(self, delivered: Callable[[str], str] = identifier) -> str:
        """Return the SQL predicate, never NULL, of the rows that break this rule.

        :param delivered: gives the SQL of a column as it was delivered, before it was cast.
        """
        raise NotImplementedError(
            f"rule {self.name} is about the whole table and has no predicate on rows"
        )


def _check_thresholds(rule: Rule) -> None:
    """Check that it is clear how much it takes for a rule to warn, and how much to fail.

    :raises DeclarationError: names the rule, what it says and what was expected.
    """
    for name, share in (("warn_above", rule.warn_above), ("fail_above", rule.fail_above)):
        if share is not None and rule.bounds is not None:
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
    warns_twice = rule.warn_outside is not None and not rule.warns_as_error
    if rule.on_failure == "warn" and (rule.fail_above is not None or warns_twice):
        raise DeclarationError(
            f"rule {rule.name} only warns, and has"
            f" {'fail_above' if rule.warn_outside is None else 'warn_outside'}.",
            next_step=(
                "Say on_failure='block' where there is a point at which nothing shall be"
                " published."
            ),
        )
    if rule.warn_outside is not None and rule.bounds is None:
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
