"""What a kind of rule has to say of its evaluation, and what it is evaluated on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.health_measurement import measure_health
from lakehouse.iceberg.metadata.history import History, Snapshot
from lakehouse.iceberg.metadata.measured_health import TableHealth
from lakehouse.iceberg.metadata.write_context import Partitions
from lakehouse.iceberg.metadata.write_result import RuleResult
from lakehouse.iceberg.read.pinned_frames import read_main
from lakehouse.iceberg.rules.snapshot_aggregates import TableAggregate
from lakehouse.tables.castable_rule import CastableRule
from lakehouse.tables.quoting import counts
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class EvaluatedRows:
    """The rows that rules are evaluated on: those that a write brings, or that readers see.

    `existing` are rows already in the table, that new ones must be unique among as well.
    `read_other` gives the rows of another table; what readers see of it where left out.
    """

    engine: Engine
    table: IcebergTable
    rows: "DataFrame"
    existing: "DataFrame | None" = None
    read_other: "Callable[[str], DataFrame] | None" = None

    def other_table(self, name: str) -> "DataFrame":
        """Return the rows of another table."""
        return self.read_other(name) if self.read_other else read_main(self.engine, name)


@dataclass(frozen=True)
class EvaluatedSnapshot:
    """The snapshot that rules are evaluated on: readers see it, or will once it is published;
    None where nothing was ever written.

    `pins` are snapshots of other tables; of those that are not named, it is what readers see.
    `partitions` are those of the run.
    """

    engine: Engine
    table: IcebergTable
    history: History
    snapshot: Snapshot | None
    pins: Mapping[str, int | None] = field(default_factory=dict)
    partitions: Partitions | None = None
    values: Mapping[str, Sequence[tuple[TableAggregate, Decimal]]] = field(default_factory=dict)
    """By rule, its aggregates of tables, with their values."""
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def rows(self) -> int:
        """Rows of the whole table."""
        return self.snapshot.rows if self.snapshot else 0

    @cached_property
    def health(self) -> TableHealth:
        """Files, deletes and manifests of the snapshot, which are read once for all rules:
        half a second for 10,000 files.
        """
        name = self.table.name
        snapshot_id = self.snapshot.snapshot_id if self.snapshot else None
        return measure_health(
            name,
            self.engine.catalog.load(name),
            snapshot_id=snapshot_id,
            lists_folder=False,
            now=self.now,
        )


class Lookup(Protocol):
    """A rule that other rows must answer, with these rows."""

    def aggregates(self) -> Mapping[str, str]:
        """Return the SQL aggregates over the evaluated rows that tell which other rows to
        read; none where all are read.
        """

    def pruned(self, values: Mapping[str, Any]) -> Self:
        """Return the lookup in fewer other rows, by the values of its aggregates."""

    def count(self, rows: "DataFrame") -> "DataFrame":
        """Return one row: the `rule`, and how many of the evaluated rows `failed`."""

    def broken_rows(self, rows: "DataFrame") -> "DataFrame":
        """Return what to show of the rows that break the rule."""


class EvaluableRule(Rule):
    """A rule that says how it is evaluated.

    The rows that a write brings answer it by `aggregates`, all rules' in one query, or by a
    `lookup` in other rows, all rules' in one more. Where it does not read the rows, the snapshot
    answers it by `snapshot_result`. A new kind overrides one of these, in a file of its own.
    """

    reads_rows: ClassVar[bool] = True
    """Whether the rows that a write brings answer it."""
    reads_other_rows: ClassVar[bool] = False
    """Whether it takes a lookup in other rows too."""
    fails_with_time: ClassVar[bool] = False
    """Whether it ceases to hold while nothing is written."""

    def aggregates(self, table: IcebergTable, where: str = "") -> Mapping[str, str]:
        """Return SQL aggregates over the rows by name; that of the rule's name is its value.

        :param where: a SQL predicate on the rows that count.
        """
        raise NotImplementedError(f"{type(self).__name__} has no aggregates")

    def lookup(self, evaluated: EvaluatedRows) -> Lookup:
        """Return the lookup that answers the rule, where it `reads_other_rows`."""
        raise NotImplementedError(f"{type(self).__name__} has no lookup")

    def result(self, values: Mapping[str, Any], rows: int) -> RuleResult:
        """Return the result on some rows, of the values of aggregates and lookups by name."""
        if self.bounds is None:
            return RuleResult(self, values[self.name], rows)
        return RuleResult(self, 0, rows, value=values[self.name])

    def table_aggregates(
        self,
        evaluated: EvaluatedSnapshot,  # noqa: ARG002  most rules need none
    ) -> Sequence[TableAggregate]:
        """Return the aggregates of tables that it takes to answer the rule by the snapshot."""
        return ()

    def snapshot_result(self, evaluated: EvaluatedSnapshot) -> RuleResult:
        """Return the result on the snapshot, with the values of the rule's aggregates in it."""
        raise NotImplementedError(f"{type(self).__name__} is not evaluated on a snapshot")


@dataclass(frozen=True, kw_only=True)
class EvaluableCastableRule(CastableRule, EvaluableRule):
    """A rule that says how a column is read, evaluated on rows that know what was delivered."""

    @classmethod
    def of(cls, rule: CastableRule) -> Self:
        """Return a rule that a declaration has, as one that can be evaluated."""
        return cls(**{part.name: getattr(rule, part.name) for part in fields(rule)})

    def aggregates(self, table: IcebergTable, where: str = "") -> Mapping[str, str]:
        """Count the rows that break it."""
        return broken_rows(self, table, where)


def broken_rows(rule: Rule, table: IcebergTable, where: str) -> dict[str, str]:
    """Return the SQL aggregate that counts the rows that break a rule on rows, by its name.

    :param where: a SQL predicate on the rows that count; empty for all.
    """
    broken = table.broken_by(rule)
    return {rule.name: counts(f"{where} AND {broken}" if where else broken)}


def evaluable(rules: Iterable[Rule]) -> list[EvaluableRule]:
    """Return rules as those that can be evaluated.

    :raises DeclarationError: names a rule that says nothing of its evaluation.
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
    """Return the SQL aggregates that rules ask of rows, to be evaluated in one query.

    :param where: a SQL predicate on the rows that count.
    """
    aggregates: dict[str, str] = {}
    for rule in rules:
        if not rule.reads_other_rows:
            aggregates |= rule.aggregates(table, where)
    return aggregates
