"""One thing that must hold of a table, as a value."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.casts import cast_sql
from lakehouse.iceberg.quoting import identifier

OnFailure = Literal["quarantine", "block", "warn"]
_NAME = re.compile(r"^[A-Za-z0-9_]+$")


@dataclass(frozen=True)
class Rule:
    """One thing that must hold of a table.

    `violated_by` is the SQL predicate of the rows that break a row rule, over the table's typed columns; it is None
    for a rule on the whole frame (`unique_on`) and for `castable`, whose predicate compares what was delivered with
    what it became (see `castable_as`).
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
    tolerated_fraction: float = 0.0
    """Share of the rows, from 0 to 1, that may break the rule before it counts as failed (`block` and `warn`)."""

    def __post_init__(self) -> None:
        if not _NAME.match(self.name):
            raise DeclarationError(
                f"rule name {self.name!r} has characters that Dagster's check names lack; "
                "expected letters, digits and underscores.",
                next_step="Give the rule a name=… of its own.",
            )
        if self.on_failure not in ("quarantine", "block", "warn"):
            raise DeclarationError(
                f"rule {self.name}: on_failure is {self.on_failure!r}; expected quarantine, block or warn."
            )
        if self.on_failure == "quarantine" and not self.is_row_rule:
            raise DeclarationError(
                f"rule {self.name} is about the whole table, and no single row can be quarantined for it; "
                "expected on_failure block or warn."
            )
        if not 0.0 <= self.tolerated_fraction < 1.0:
            raise DeclarationError(
                f"rule {self.name}: tolerated_fraction is {self.tolerated_fraction}; expected 0 to below 1."
            )
        if self.tolerated_fraction and self.on_failure == "quarantine":
            raise DeclarationError(
                f"rule {self.name} quarantines, and has a tolerated_fraction; a row is refused or it is not.",
                next_step="Leave tolerated_fraction out, or use on_failure='block' or 'warn'.",
            )

    @property
    def is_row_rule(self) -> bool:
        """Whether a single row can break it."""
        return not self.unique_on

    def predicate(self, delivered: Callable[[str], str] = lambda column: identifier(column)) -> str:
        """Return the SQL predicate, never NULL, of the rows that break this rule.

        :param delivered: gives the SQL of a column as it was delivered, before it was cast.
        """
        if self.castable_as is not None:
            (column,) = self.columns
            raw = delivered(column)
            return f"({raw} IS NOT NULL AND {self.cast_sql(raw)} IS NULL)"
        if self.violated_by is None:
            raise DeclarationError(f"rule {self.name} is about the whole table and has no predicate on rows.")
        return self.violated_by

    def cast_sql(self, raw: str) -> str:
        """Return SQL for a delivered value in the type that `castable` names; NULL where it cannot be read as one."""
        assert self.castable_as is not None
        return cast_sql(raw, self.castable_as, self.time_zone)


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
