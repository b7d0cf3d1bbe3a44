"""The content of the site as values, read once and independent of how it is shown."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from lakehouse.alerts.incidents import Incident
from lakehouse.alerts.table_states import Condition, State
from lakehouse.iceberg.metadata.snapshots import History, Snapshot
from lakehouse.iceberg.metadata.table_state import ColumnState, TableState
from lakehouse.iceberg.read.quarantined_rows import QuarantinedRows
from lakehouse.tables.feed import Feed
from lakehouse.tables.table import Column, IcebergTable

FEED = "feed "
"""Prefix of a feed's name among the sources of tables."""
Outcome = Literal["passed", "quarantined", "warned", "failed", "not run"]


@dataclass(frozen=True)
class CheckFacts:
    """A check and its last result, without failing rows and without text from a run."""

    name: str
    description: str
    on_failure: str
    outcome: Outcome
    at: datetime | None
    failed_rows: int | None
    total_rows: int | None
    value: float | None


@dataclass(frozen=True)
class TableFacts:
    """The content of a table's page.

    :param declared: None if the table is not declared.
    :param metadata: None, like `history`, if it was not read.
    :param damage: why it cannot be read.
    :param unsupported: why only Spark can read it.
    """

    name: str
    declared: IcebergTable | None
    metadata: TableState | None = None
    history: History | None = None
    exists: bool = True
    damage: str = ""
    unsupported: str = ""
    description: str = ""
    kinds: Collection[str] = ()
    condition: Condition = field(default_factory=Condition)
    contract: str = ""
    quarantine_of: str = ""
    quarantined: QuarantinedRows | None = None
    checks: tuple[CheckFacts, ...] = ()

    @property
    def main(self) -> Snapshot | None:
        """The current snapshot."""
        return self.history.main if self.history else None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.main.rows if self.main else 0

    def total(self, *keys: str) -> int:
        """Return the sum of some totals of the current snapshot's summary."""
        return sum(self.main.count(f"total-{key}") for key in keys) if self.main else 0

    @property
    def comment(self) -> str:
        """The declared comment, or that of the metadata."""
        comment = self.declared.comment if self.declared else ""
        return comment or (self.metadata.comment if self.metadata else "")

    @property
    def columns(self) -> Sequence[Column | ColumnState]:
        """The declared columns, or those of the metadata."""
        if self.declared:
            return self.declared.columns
        return self.metadata.columns if self.metadata else ()

    def checks_that(self, *outcomes: Outcome) -> list[CheckFacts]:
        """Return the checks with one of these outcomes."""
        return [check for check in self.checks if check.outcome in outcomes]

    @property
    def state(self) -> State:
        """Its worst state."""
        return self.condition.state(
            exists=self.exists,
            damage=self.damage,
            unsupported=self.unsupported,
            has_failed_checks=bool(self.checks_that("failed")),
        )


@dataclass(frozen=True)
class SiteFacts:
    """The content of the site at a timestamp.

    :param tables: by name.
    :param sources: by table, the tables and feeds that it is computed from.
    :param incidents: incidents without a table page.
    :param catalog_uri: the address of the SQL catalog; empty for Glue.
    """

    title: str
    now: datetime
    tables: Mapping[str, TableFacts]
    feeds: tuple[Feed, ...] = ()
    feed_warnings: Mapping[str, Collection[str]] = field(default_factory=dict)
    sources: Mapping[str, Collection[str]] = field(default_factory=dict)
    incidents: tuple[Incident, ...] = ()
    catalog_uri: str = ""
