"""States and trends of tables for `lakehouse status`, from metadata and Dagster's storage."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lakehouse.alerts.table_states import WORST_FIRST
from lakehouse.errors import TableUnreadable
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.evolve.planning import plan
from lakehouse.iceberg.metadata.snapshots import History
from lakehouse.iceberg.metadata.time_series import (
    Point,
    Series,
    bytes_over_time,
    rows_over_time,
)
from lakehouse.orchestration.runs.older_code import code_of_tables
from lakehouse.project import MONITORING
from lakehouse.quality.metrics.metric import FAILED_FRACTION, NO_ANOMALY
from lakehouse.site.facts import Outcome, TableFacts

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph
    from lakehouse.orchestration.runs.older_code import TableCode


@dataclass(frozen=True)
class TableStatus:
    """The content of a table's page on the site, and what only an operator needs."""

    facts: TableFacts
    pending: Sequence[str]
    """Differences between its declaration and the table."""
    quarantined: int
    """Current number of its quarantined rows."""
    code: "TableCode | None"
    """Code state of its rows; None for tables without code or append-only tables."""

    @property
    def damage(self) -> str:
        """Error that a user must fix: no run can read or write a declared table."""
        return self.facts.damage or (self.facts.unsupported if self.facts.declared else "")

    @property
    def is_read(self) -> bool:
        """Whether its metadata was read."""
        return self.facts.history is not None

    @property
    def state(self) -> str:
        """Its worst state, and whether it has rows of older code; empty if ok."""
        states = [] if self.facts.state == "ok" else [str(self.facts.state)]
        if self.code and self.code.is_older:
            partitions = len(self.code.older_partitions)
            states.append(f"older code ({partitions})" if partitions else "older code")
        return ", ".join(states)

    @property
    def code_state(self) -> str | None:
        """`older`, `unknown` or `current` code; None if nothing can be recomputed."""
        if self.code is None:
            return None
        if self.code.is_older:
            return "older"
        return "unknown" if self.code.is_unknown else "current"

    @property
    def written_at(self) -> datetime | None:
        """When its last snapshot became current."""
        log = self.facts.history.log if self.facts.history else ()
        return log[-1][0] if log else None

    @property
    def kind(self) -> str | None:
        """Kind of the last commit; Iceberg's operation for other writers."""
        main = self.facts.main
        if main is None:
            return "not read" if self.facts.exists and not self.is_read else None
        return main.commit.kind if main.commit else main.operation

    @property
    def passed_checks(self) -> int:
        """Number of passed checks, also if rows were quarantined; none of a blocked table."""
        is_blocked = self.facts.state == "blocked"
        return 0 if is_blocked else len(self.facts.checks_that("passed", "quarantined"))

    def checks_that(self, outcome: Outcome) -> list[str]:
        """Return the names of the checks with an outcome."""
        return [check.name for check in self.facts.checks_that(outcome)]

    @property
    def check_summary(self) -> str:
        """Number of checks with the worst result."""
        outcomes: tuple[Outcome, ...] = ("failed", "warned")
        for outcome in outcomes:
            if names := self.checks_that(outcome):
                return f"{len(names)} {outcome}"
        return f"{self.passed_checks} passed" if self.passed_checks else ""


def statuses_of(
    tables: Mapping[str, TableFacts], catalog: Catalog, graph: "AssetGraph"
) -> list[TableStatus]:
    """Return the statuses of tables, the worst first."""
    declared = {name: facts.declared for name, facts in tables.items() if facts.declared}
    histories = {name: facts.history for name, facts in tables.items() if facts.history}
    code = code_of_tables(catalog, histories, declared, graph)
    statuses = []
    for name, facts in tables.items():
        quarantine = facts.declared.quarantine if facts.declared else None
        quarantined = tables[quarantine.name].rows if quarantine else 0
        pending = _pending(facts, catalog)
        statuses.append(TableStatus(facts, pending, quarantined, code.get(name)))
    return sorted(
        statuses, key=lambda one: (WORST_FIRST.index(one.facts.state), one.facts.name)
    )


def _pending(facts: TableFacts, catalog: Catalog) -> Sequence[str]:
    if facts.declared is None or (facts.exists and facts.metadata is None):
        return ()
    changes = plan(facts.declared, facts.metadata, catalog.iceberg)
    return (
        *(step.description for step in changes.steps),
        *(f"denied: {change}" for change in changes.denied),
    )


_WINDOW = timedelta(days=90)


@dataclass(frozen=True)
class TableTrend:
    """The rows and bytes of a table over time, and the share of rows, 0 to 1, that failed the
    worst check.
    """

    rows: Series
    size_bytes: Series
    failed_share: Series


def read_trends(
    catalog: Catalog, histories: Iterable[History], now: datetime
) -> dict[str, TableTrend]:
    """Return the trends by table: of retained snapshots, and of checks of the last 90 days."""
    try:
        shares = failed_shares(catalog, now - _WINDOW)
    except (TableUnreadable, OSError):
        # `status` reports the damage, and the snapshots are still useful.
        shares = {}
    return {
        history.table: TableTrend(
            rows_over_time(history),
            bytes_over_time(history),
            tuple(shares.get(history.table, ())),
        )
        for history in histories
    }


def failed_shares(catalog: Catalog, since: datetime) -> dict[str, list[Point]]:
    """Return by table the largest failed share of each hour, of all checks except the anomaly
    check.
    """
    import pyarrow.compute as pc

    if not catalog.has(MONITORING.metrics):
        return {}
    where = (
        f"measured_at >= '{since.isoformat()}' AND metric LIKE '{FAILED_FRACTION}.%'"
        f" AND metric != '{FAILED_FRACTION}.{NO_ANOMALY}'"
    )
    fields = ("table_name", "metric", "value", "measured_at")
    measured = catalog.load(MONITORING.metrics).scan(where, selected_fields=fields).to_arrow()
    hours = pc.floor_temporal(measured["measured_at"], unit="hour")
    grouped = measured.append_column("hour", hours).group_by(["table_name", "hour"])
    shares: dict[str, list[Point]] = {}
    for row in grouped.aggregate([("value", "max")]).sort_by("hour").to_pylist():
        shares.setdefault(row["table_name"], []).append((row["hour"], row["value_max"]))
    return shares
