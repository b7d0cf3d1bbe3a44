"""What the site tells, as values: read in one go, and written to pages without another look."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from lakehouse.alerts.overdue_tables import Freshness
from lakehouse.alerts.table_states import Condition, State
from lakehouse.iceberg.metadata.time_series import Series
from lakehouse.site.table_trends import TableTrend
from lakehouse.tables.table_names import namespace_of

Outcome = Literal["passed", "quarantined", "warned", "failed", "not run"]
_HOLDING: tuple[Outcome, ...] = ("passed", "quarantined")
_WORST_FIRST: tuple[Outcome, ...] = ("failed", "warned", "quarantined", "passed", "not run")


@dataclass(frozen=True)
class ColumnFacts:
    """A column: its name, its type as Spark writes it, and what it means.

    `personal` says how it is about people, in words; empty where it is not.
    """

    name: str
    type: str
    doc: str = ""
    personal: str = ""
    is_required: bool = False


@dataclass(frozen=True)
class CheckFacts:
    """A check, what happens where it does not hold, and what came of it last.

    No row that failed is here, and no text that a run made of one.
    """

    name: str
    description: str = ""
    on_failure: str = ""
    outcome: Outcome = "not run"
    at: datetime | None = None
    failed_rows: int | None = None
    total_rows: int | None = None
    value: float | None = None
    failed_shares: Series = ()


@dataclass(frozen=True)
class QuarantineFacts:
    """The rows of a table that were refused: how many there are, by which rules, and over
    time.
    """

    table: str
    rows: int = 0
    by_rule: Mapping[str, int] = field(default_factory=dict)
    newest_at: datetime | None = None
    trend: Series = ()


@dataclass(frozen=True)
class IncidentFacts:
    """Something that fails and is not resolved: without rows, and without names of files."""

    title: str
    kind: str
    severity: str
    opened_at: datetime
    times: int
    is_acknowledged: bool
    table: str = ""
    url: str = ""
    """The page of Dagster's UI that shows it."""


@dataclass(frozen=True)
class UpkeepFacts:
    """The last time that a step of upkeep was tried on a table."""

    step: str
    outcome: str
    at: datetime
    fewer_files: int
    cost_bytes: int
    reason: str = ""


@dataclass(frozen=True)
class FeedFacts:
    """A feed: where its files land, of which kinds they are, and how often they come."""

    name: str
    table: str
    formats: tuple[str, ...]
    time_zone: str
    expected_within: timedelta | None = None
    warnings: tuple[str, ...] = ()
    """What an operator has to do about its files."""


@dataclass(frozen=True)
class TableFacts:
    """All that the site tells of a table."""

    name: str
    is_declared: bool
    is_there: bool
    comment: str = ""
    description: str = ""
    owner: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    columns: tuple[ColumnFacts, ...] = ()
    write_mode: str = ""
    partitioning: tuple[str, ...] = ()
    no_subject: str = ""
    location: str = ""
    format_version: int | None = None
    rows: int = 0
    size_bytes: int = 0
    files: int = 0
    snapshots: int = 0
    written_at: datetime | None = None
    condition: Condition = field(default_factory=Condition)
    damage: str = ""
    """Why it cannot be read, where something of it is missing."""
    unsupported: str = ""
    """Why it is not read, where only Spark knows the type of a column."""
    contract: str = ""
    """What it promises to those who read it, as YAML of the Open Data Contract Standard."""
    quarantine_of: str = ""
    quarantine: QuarantineFacts | None = None
    checks: tuple[CheckFacts, ...] = ()
    incidents: tuple[IncidentFacts, ...] = ()
    upkeep: tuple[UpkeepFacts, ...] = ()
    trend: TableTrend = field(default_factory=TableTrend)

    @property
    def is_read(self) -> bool:
        """Whether its metadata was read."""
        return self.is_there and not (self.damage or self.unsupported)

    @property
    def layer(self) -> str:
        """The namespace that it is in."""
        return namespace_of(self.name)

    @property
    def short_name(self) -> str:
        """The name without its layer."""
        return self.name.rpartition(".")[2]

    @property
    def failed_checks(self) -> tuple[CheckFacts, ...]:
        """The checks that do not hold of what readers see, or of a candidate."""
        return tuple(check for check in self.checks if check.outcome == "failed")

    @property
    def warned_checks(self) -> tuple[CheckFacts, ...]:
        """The checks that people are told of."""
        return tuple(check for check in self.checks if check.outcome == "warned")

    @property
    def passed_checks(self) -> tuple[CheckFacts, ...]:
        """The checks that hold for published rows; none of a blocked table, whose checks
        evaluated a candidate that readers do not see.
        """
        if self.state == "blocked":
            return ()
        return tuple(check for check in self.checks if check.outcome in _HOLDING)

    @property
    def worst_checks(self) -> tuple[CheckFacts, ...]:
        """All checks, those that do not hold first."""
        return tuple(sorted(self.checks, key=lambda check: _WORST_FIRST.index(check.outcome)))

    @property
    def freshness(self) -> tuple[Freshness, ...]:
        """How old it may be."""
        return self.condition.freshness

    @property
    def state(self) -> State:
        """Its worst state."""
        return self.condition.state(
            exists=self.is_there,
            damage=self.damage,
            unsupported=self.unsupported,
            has_failed_checks=bool(self.failed_checks),
        )


@dataclass(frozen=True)
class SiteFacts:
    """All that the site tells, as of a moment.

    `sources` are, by table, the tables that it is computed from.
    """

    title: str
    now: datetime
    tables: tuple[TableFacts, ...]
    feeds: tuple[FeedFacts, ...] = ()
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    incidents: tuple[IncidentFacts, ...] = ()
    """Those of no table that has a page."""
    catalog_uri: str = ""
    """Where PyIceberg opens the catalog; empty for Glue."""
