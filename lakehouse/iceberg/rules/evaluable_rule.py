"""Interface of a rule's evaluation, and its inputs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import History, Snapshot
from lakehouse.iceberg.values.write_context import Partitions
from lakehouse.iceberg.values.write_result import RuleResult
from lakehouse.tables.quoting import counts
from lakehouse.tables.rule import CastableRule, Rule
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class EvaluatedRows:
    """The rows that rules are evaluated on: those of a write, or the current ones.

    `existing` are existing rows of the table, for unique rules. `read_other` returns the rows
    of another table; defaults to its current rows.
    """

    engine: Engine
    table: IcebergTable
    rows: "DataFrame"
    existing: "DataFrame | None" = None
    read_other: "Callable[[str], DataFrame] | None" = None


@dataclass(frozen=True)
class EvaluatedSnapshot:
    """The snapshot that rules are evaluated on, current or to be published, if there is one.

    `pins` are snapshots of other tables, by default current; `partitions` are those of the run.
    """

    engine: Engine
    table: IcebergTable
    history: History
    snapshot: Snapshot | None
    pins: Mapping[str, int | None] = field(default_factory=dict)
    partitions: Partitions | None = None
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return self.snapshot.rows if self.snapshot else 0


class Lookup(Protocol):
    """A rule that needs other rows, together with these rows."""

    def aggregates(self) -> Mapping[str, str]:
        """Return SQL aggregates that limit the other rows to read; empty for all."""

    def pruned(self, values: Mapping[str, Any]) -> Self:
        """Return the lookup in fewer rows, by the values of its aggregates."""

    def count(self, rows: "DataFrame") -> "DataFrame":
        """Return one row with the columns `rule` and `failed`, the number of failing rows."""

    def broken_rows(self, rows: "DataFrame") -> "DataFrame":
        """Return the sample columns of the failing rows."""


class EvaluableRule(Rule):
    """A rule with its evaluation.

    On rows, it is evaluated by `aggregates`, in one query for all rules, or by a `lookup` in
    other rows, in one more query. Otherwise it is evaluated on the snapshot by
    `snapshot_result`. A new kind of rule overrides one of these methods, in its own file.
    """

    reads_rows: ClassVar[bool] = True
    """Whether it is evaluated on the rows of a write."""
    reads_other_rows: ClassVar[bool] = False
    """Whether it needs a lookup in other rows."""
    fails_with_time: ClassVar[bool] = False
    """Whether its result can change without a write."""

    def aggregates(self, table: IcebergTable, where: str = "") -> Mapping[str, str]:
        """Return SQL aggregates by name; the one named like the rule is its value.

        By default, it is the number of rows that break a row rule.

        :param where: a SQL predicate on the evaluated rows; empty for all.
        """
        broken = table.broken_by(self)
        return {self.name: counts(f"{where} AND {broken}" if where else broken)}

    def lookup(self, evaluated: EvaluatedRows) -> Lookup:
        """Return the lookup of a rule with `reads_other_rows`."""
        raise NotImplementedError(f"{type(self).__name__} has no lookup")

    def result(self, values: Mapping[str, Any], rows: int) -> RuleResult:
        """Return the result, from the values of aggregates and lookups by name."""
        if self.bounds is None:
            return RuleResult(self, values[self.name], rows)
        return RuleResult(self, 0, rows, value=values[self.name])

    def snapshot_result(self, evaluated: EvaluatedSnapshot) -> RuleResult:
        """Return the result on the snapshot."""
        raise NotImplementedError(f"{type(self).__name__} is not evaluated on a snapshot")


@dataclass(frozen=True, kw_only=True)
class EvaluableCastableRule(CastableRule, EvaluableRule):
    """A castable rule, evaluated on rows with their delivered values."""

    @classmethod
    def of(cls, rule: CastableRule) -> Self:
        """Convert a declared rule to an evaluable one."""
        return cls(**{part.name: getattr(rule, part.name) for part in fields(rule)})


def evaluable(rules: Iterable[Rule]) -> list[EvaluableRule]:
    """Convert rules to evaluable rules.

    :raises DeclarationError: names a rule that has no evaluation.
    """
    known: list[EvaluableRule] = []
    for declared in rules:
        rule = declared
        if isinstance(declared, CastableRule):
            rule = EvaluableCastableRule.of(declared)
        if not isinstance(rule, EvaluableRule):
            raise DeclarationError(
                f"rule {rule.name} is a {type(rule).__name__}, which cannot be evaluated;"
                " expected a subclass of EvaluableRule."
            )
        known.append(rule)
    return known


def row_aggregates(
    table: IcebergTable, rules: Iterable[EvaluableRule], where: str = ""
) -> dict[str, str]:
    """Return the SQL aggregates of all rules without lookups, for one query.

    :param where: a SQL predicate on the evaluated rows.
    """
    aggregates: dict[str, str] = {}
    for rule in rules:
        if not rule.reads_other_rows:
            aggregates |= rule.aggregates(table, where)
    return aggregates
