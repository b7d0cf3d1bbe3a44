"""What `lakehouse status` knows of each table, from metadata and from Dagster's storage: no JVM, no scan of data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from lakehouse.iceberg.evolution import Plan, plan
from lakehouse.iceberg.history import History, Snapshot, history_of
from lakehouse.iceberg.state import state_of

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from lakehouse.iceberg.catalog import Catalog
    from lakehouse.iceberg.table import IcebergTable


@dataclass(frozen=True)
class Checks:
    """The last result of each of a table's checks."""

    passed: int = 0
    failed: Sequence[str] = ()

    def __str__(self) -> str:
        if not self.passed and not self.failed:
            return ""
        return f"{', '.join(self.failed)} failed" if self.failed else f"{self.passed} passed"


@dataclass(frozen=True)
class TableStatus:
    """What is known of one table; a declared one that no run has made yet has only its name and its plan."""

    table: str
    declared: bool
    exists: bool
    rows: int = 0
    snapshots: int = 0
    files: int = 0
    size_bytes: int = 0
    written_at: datetime | None = None
    kind: str | None = None
    """What the last commit was: the kind of its stamp, or Iceberg's operation where the lakehouse did not make it."""
    checks: Checks = Checks()
    pending: Sequence[str] = ()
    """What its declaration has and the table has not."""


def table_statuses(
    catalog: "Catalog", declared: "Mapping[str, IcebergTable]", checks: Mapping[str, Checks]
) -> list[TableStatus]:
    """Return the status of every table, declared or not, by name."""
    there = catalog.tables()
    return [
        _status(catalog, name, declared.get(name), name in there, checks.get(name, Checks()))
        for name in sorted({*there, *declared})
    ]


def last_checks(instance: "DagsterInstance", declared: "Iterable[IcebergTable]") -> dict[str, Checks]:
    """Return the last results of the declared tables' checks, as Dagster remembers them."""
    from dagster import AssetCheckKey

    from lakehouse.resources.keys import asset_key

    tables = {asset_key(table.name): table for table in declared}
    keys = [AssetCheckKey(key, rule.name) for key, table in tables.items() for rule in table.rules]
    records = instance.event_log_storage.get_asset_check_summary_records(keys)
    found: dict[str, Checks] = {}
    for key, record in records.items():
        last = record.last_completed_check_execution_record
        if last is None:
            continue
        name = tables[key.asset_key].name
        so_far = found.get(name, Checks())
        passed = last.evaluation is not None and last.evaluation.passed
        failed = so_far.failed if passed else (*so_far.failed, key.name)
        found[name] = Checks(so_far.passed + passed, failed)
    return found


def _status(catalog: "Catalog", name: str, table: "IcebergTable | None", exists: bool, checks: Checks) -> TableStatus:
    if not exists:
        return TableStatus(name, declared=True, exists=False, pending=_pending(plan(table, None) if table else None))
    loaded = catalog.load(name)
    history = history_of(name, loaded)
    main = history.main
    return TableStatus(
        table=name,
        declared=table is not None,
        exists=True,
        rows=main.rows if main else 0,
        snapshots=len(history.snapshots),
        files=main.count("total-data-files") + main.count("total-delete-files") if main else 0,
        size_bytes=main.count("total-files-size") if main else 0,
        written_at=_current_since(history),
        kind=_kind(main) if main else None,
        checks=checks,
        pending=_pending(plan(table, state_of(name, loaded)) if table else None),
    )


def _current_since(history: History) -> datetime | None:
    return history.log[-1][0] if history.log else None


def _kind(snapshot: Snapshot) -> str:
    return snapshot.stamp.kind if snapshot.stamp else snapshot.operation


def _pending(found: Plan | None) -> Sequence[str]:
    if found is None:
        return ()
    return (*(step.describe() for step in found.steps), *(f"refused: {refusal}" for refusal in found.refusals))
