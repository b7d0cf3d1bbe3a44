"""Table states for `lakehouse status` from metadata and Dagster's storage; no JVM, no scan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from lakehouse.alerts.table_states import WORST_FIRST, Condition, State, TableStates
from lakehouse.errors import TableDamaged, TableNotFound, TableUnreadable, TypeUnsupported
from lakehouse.iceberg.catalog.damaged_metadata import explain_table
from lakehouse.iceberg.catalog.iceberg_release import IcebergRelease
from lakehouse.iceberg.evolve.planning import plan
from lakehouse.iceberg.metadata.health_measurement import measure_health
from lakehouse.iceberg.metadata.health_metrics import TableHealth
from lakehouse.iceberg.metadata.snapshots import History, Snapshot, history_of
from lakehouse.iceberg.metadata.table_state import TableState, state_of

if TYPE_CHECKING:
    from dagster import DagsterInstance
    from pyiceberg.table import Table

    from lakehouse.iceberg.catalog.catalog import Catalog
    from lakehouse.iceberg.catalog.engine import Engine
    from lakehouse.orchestration.dagster_internals import AssetGraph
    from lakehouse.orchestration.runs.older_code import TableCode
    from lakehouse.tables.table import IcebergTable
    from lakehouse.upkeep.upkeep_run import Upkept

_MIN_SMALL_FILES = 5
"""Minimum number of small files to report; a few per day are normal."""


@dataclass(frozen=True)
class Checks:
    """Last results of checks; a check that failed only for quarantined rows counts as passed."""

    passed: int = 0
    warned: Sequence[str] = ()
    failed: Sequence[str] = ()

    @property
    def summary(self) -> str:
        """Number of checks with the worst result."""
        if self.failed:
            return f"{len(self.failed)} failed"
        if self.warned:
            return f"{len(self.warned)} warned"
        return f"{self.passed} passed" if self.passed else ""

    def __str__(self) -> str:
        results = {"warned": self.warned, "failed": self.failed}
        return "; ".join(
            f"{', '.join(names)} {word}" for word, names in results.items() if names
        )


@dataclass(frozen=True)
class TableStatus:
    """State of one table; a table that no run has created has only its name and plan."""

    table: str
    declared: bool
    exists: bool
    rows: int = 0
    snapshots: int = 0
    files: int = 0
    size_bytes: int = 0
    written_at: datetime | None = None
    kind: str | None = None
    """Kind of the last commit; Iceberg's operation for other writers."""
    checks: Checks = Checks()
    pending: Sequence[str] = ()
    """Differences between its declaration and the table."""
    damage: str = ""
    """Error that a user must fix to make it readable."""
    unsupported: str = ""
    """Why a table of other writers is skipped: it has a type that only Spark reads."""
    quarantined: int = 0
    """Current number of its quarantined rows."""
    small_files: int = 0
    """Number of data files that compaction would save."""
    delete_files: int = 0
    """Number of delete files, which each read opens."""
    upkeep: str = ""
    """Upkeep of these files: `due`, or why not; empty if there are few."""
    condition: Condition = field(default_factory=Condition)
    code: "TableCode | None" = None
    """Code state of its rows; None for tables without code or append-only tables."""
    history: History | None = field(default=None, repr=False)
    measured: TableHealth | None = field(default=None, repr=False)
    """Its health; None if it has few files."""

    @property
    def is_read(self) -> bool:
        """Whether its metadata was read."""
        return self.exists and not (self.damage or self.unsupported)

    @property
    def worst_state(self) -> State:
        """Its worst state, as on the site."""
        return self.condition.state(
            exists=self.exists,
            damage=self.damage,
            unsupported=self.unsupported,
            has_failed_checks=bool(self.checks.failed),
        )

    @property
    def state(self) -> str:
        """Its worst state, and whether it has rows of older code; empty if ok."""
        states = [] if self.worst_state == "ok" else [str(self.worst_state)]
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
    def health(self) -> str:
        """Short note about its files; empty for a healthy table."""
        notes = []
        if self.small_files >= _MIN_SMALL_FILES:
            notes.append(f"small files {self.small_files}")
        if self.delete_files:
            notes.append(f"deletes {self.delete_files}")
        upkeep = [self.upkeep] if notes and self.upkeep else []
        return "; ".join(filter(None, [", ".join(notes), *upkeep]))


def table_statuses(
    catalog: "Catalog",
    declared: "Mapping[str, IcebergTable]",
    checks: Mapping[str, Checks],
) -> list[TableStatus]:
    """Return the status of each table, declared or not, by name."""
    existing = catalog.tables()
    statuses = []
    for name in sorted({*existing, *declared}):
        its_checks = checks.get(name, Checks())
        statuses.append(
            _status(catalog, name, declared.get(name), name in existing, its_checks)
        )
    return statuses


def with_conditions(statuses: Sequence[TableStatus], states: TableStates) -> list[TableStatus]:
    """Return statuses with conditions, the worst first; blocked tables show no passed checks."""
    conditions = states.conditions(status.table for status in statuses)
    changed = []
    for status in statuses:
        status = replace(status, condition=conditions[status.table])
        if status.worst_state == "blocked":
            status = replace(status, checks=replace(status.checks, passed=0))
        changed.append(status)
    return sorted(changed, key=lambda one: (WORST_FIRST.index(one.worst_state), one.table))


def with_code(
    statuses: Sequence[TableStatus],
    catalog: "Catalog",
    declared: "Mapping[str, IcebergTable]",
    graph: "AssetGraph",
) -> list[TableStatus]:
    """Return statuses with the code state of their rows."""
    from lakehouse.orchestration.runs.older_code import code_of_tables

    histories = {status.table: status.history for status in statuses if status.history}
    known = code_of_tables(catalog, histories, declared, graph)
    return [replace(status, code=known.get(status.table)) for status in statuses]


def with_upkeep(
    statuses: Sequence[TableStatus], engine: "Engine", upkept: "Upkept", now: datetime
) -> list[TableStatus]:
    """Return statuses with the upkeep plan of tables with needless files; no JVM."""
    healths: list[TableHealth] = []
    upkeep: dict[str, str] = {}
    for status in statuses:
        if status.health and status.declared and status.measured:
            healths.append(status.measured)
        elif status.health:
            upkeep[status.table] = "not declared, so that `maintain` keeps it where it is named"
    if healths:
        upkeep |= _compactions(healths, engine, upkept, now)
    return [replace(status, upkeep=upkeep.get(status.table, "")) for status in statuses]


def _compactions(
    healths: Sequence[TableHealth], engine: "Engine", upkept: "Upkept", now: datetime
) -> dict[str, str]:
    """Return by table whether its compaction is due, or why not."""
    from lakehouse.upkeep.planner import plan_upkeep
    from lakehouse.upkeep.upkeep_run import known_of

    try:
        known = known_of(engine, upkept, now)
    except (TableUnreadable, OSError):
        # Show the tables even so.
        why = "unknown, since what upkeep remembers cannot be read; see `lakehouse doctor`"
        return {health.table: why for health in healths}
    steps = plan_upkeep(healths, known, now).steps
    return {
        step.table: "due" if step.is_due else step.reason
        for step in steps
        if step.step == "compact"
    }


def last_checks(
    instance: "DagsterInstance | None",
    graph: "AssetGraph",
    declared: "Mapping[str, IcebergTable]",
) -> dict[str, Checks]:
    """Return the last stored check results by table."""
    from lakehouse.site.read_checks import read_checks

    results = {}
    for name, checks in read_checks(graph, instance, declared).items():
        outcomes = [check.outcome for check in checks]
        results[name] = Checks(
            outcomes.count("passed") + outcomes.count("quarantined"),
            tuple(check.name for check in checks if check.outcome == "warned"),
            tuple(check.name for check in checks if check.outcome == "failed"),
        )
    return results


def _status(
    catalog: "Catalog", name: str, table: "IcebergTable | None", exists: bool, checks: Checks
) -> TableStatus:
    if not exists:
        pending = _pending(table, None, catalog.iceberg)
        return TableStatus(name, declared=True, exists=False, pending=pending)
    is_declared = table is not None
    unread = TableStatus(name, declared=is_declared, exists=True, checks=checks)
    try:
        loaded = catalog.load(name)
        known = _known(name, table, loaded, checks)
        pending = _pending(table, state_of(name, loaded), catalog.iceberg)
    except TableDamaged as error:
        # Show the remaining tables even so.
        return replace(unread, kind="damaged", damage=str(error))
    except TypeUnsupported as error:
        # No run can read or write a declared table.
        if is_declared:
            return replace(unread, kind="not read", damage=str(error))
        return replace(unread, kind="not read", unsupported=str(error))
    return replace(known, quarantined=_quarantined(catalog, table), pending=pending)


def _known(
    name: str, table: "IcebergTable | None", loaded: "Table", checks: Checks
) -> TableStatus:
    history = history_of(name, loaded)
    main = history.main
    health = _measured(name, loaded, main)
    commit = main.commit if main else None
    operation = main.operation if main else None
    return TableStatus(
        table=name,
        declared=table is not None,
        exists=True,
        rows=main.rows if main else 0,
        snapshots=len(history.snapshots),
        files=main.count("total-data-files") + main.count("total-delete-files") if main else 0,
        size_bytes=main.count("total-files-size") if main else 0,
        written_at=history.log[-1][0] if history.log else None,
        kind=commit.kind if commit else operation,
        checks=checks,
        small_files=health.fewer_files if health else 0,
        delete_files=health.delete_files if health else 0,
        history=history,
        measured=health,
    )


def _measured(name: str, loaded: "Table", main: Snapshot | None) -> TableHealth | None:
    """Measure a table's health; skips tables with few files."""
    if main is None:
        return None
    is_small = main.count("total-data-files") <= _MIN_SMALL_FILES
    if is_small and not main.count("total-delete-files"):
        return None
    with explain_table(name):
        return measure_health(name, loaded, lists_folder=False)


def _quarantined(catalog: "Catalog", table: "IcebergTable | None") -> int:
    quarantine = table.quarantine if table else None
    if quarantine is None:
        return 0
    try:
        main = history_of(quarantine.name, catalog.load(quarantine.name)).main
        return main.rows if main else 0
    except (TableNotFound, TableUnreadable):
        # An unreadable quarantine has its own line.
        return 0


def _pending(
    table: "IcebergTable | None", state: TableState | None, iceberg: IcebergRelease
) -> Sequence[str]:
    if table is None:
        return ()
    changes = plan(table, state, iceberg)
    return (
        *(step.description for step in changes.steps),
        *(f"denied: {change}" for change in changes.denied),
    )
