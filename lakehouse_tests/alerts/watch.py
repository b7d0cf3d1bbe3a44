"""A small project with a table, its checks, a job and a feed, and its messages."""

import logging
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import dagster as dg

from lakehouse.alerts.alerts_sensor import detect_and_dispatch
from lakehouse.alerts.incidents import Alert
from lakehouse.alerts.monitor_context import MonitorContext
from lakehouse.alerts.sinks import read_alerts
from lakehouse.iceberg.rules.rows import castable, length
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.settings import Settings
from lakehouse.tables.table import Column, IcebergTable, Merge

TABLE = IcebergTable(
    "silver.fruits",
    "Fruits.",
    [
        Column("id", "bigint"),
        Column("fruit", "string"),
        Column("email", "string", personal=True),
    ],
    write=Merge(on=["fruit"]),
    rules=[castable("id", "bigint"), length("fruit", 2, on_failure="warn"), unique("fruit")],
    owner="data-platform",
)
FEED = SimpleNamespace(
    name="fruits",
    table="silver.fruits",
    inbox="inbox/fruits/",
    rejected="rejected/fruits/",
    expected_within=timedelta(hours=6),
)
SAMPLE = [{"id": "x", "email": "masked:0123456789ab"}, {"id": "y", "email": "one@example.com"}]


@dataclass
class Watch:
    """Which checks of the table fail next, and whether its run and the job fail."""

    settings: Settings
    instance: dg.DagsterInstance
    failing: set[str] = field(default_factory=set)
    error: BaseException | None = None
    table: IcebergTable = TABLE
    known: int = 0
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def definitions(self) -> dg.Definitions:
        @dg.multi_asset(
            name="silver__fruits",
            specs=[dg.AssetSpec(["silver", "fruits"], skippable=True)],
            check_specs=[
                dg.AssetCheckSpec("castable_id", asset=["silver", "fruits"]),
                dg.AssetCheckSpec("length_fruit", asset=["silver", "fruits"]),
                dg.AssetCheckSpec("has_partition", asset=["silver", "fruits"]),
                dg.AssetCheckSpec("unique_fruit", asset=["silver", "fruits"], blocking=True),
            ],
            can_subset=True,
        )
        def fruits(context: dg.AssetExecutionContext):
            if self.error:
                raise self.error
            if context.selected_asset_keys:
                yield dg.MaterializeResult(["silver", "fruits"])
            yield from (
                self._result(key.name) for key in sorted(context.selected_asset_check_keys)
            )

        @dg.asset(key=["gold", "fruits"], deps=[dg.AssetKey(["silver", "fruits"])])
        def gold() -> None:
            """A downstream table."""

        @dg.op
        def work() -> None:
            if self.error:
                raise self.error

        @dg.job
        def upkeep() -> None:
            work()

        return dg.Definitions([fruits, gold], jobs=[upkeep])

    def _result(self, name: str) -> dg.AssetCheckResult:
        failed = name in self.failing
        severity = (
            dg.AssetCheckSeverity.WARN
            if name != "unique_fruit"
            else dg.AssetCheckSeverity.ERROR
        )
        sample = dg.MetadataValue.table([dg.TableRecord(row) for row in SAMPLE])
        found = {
            "failed_rows": int(failed),
            "total_rows": 4,
            "threshold": 0.0,
            "snapshot_id": "123",
        }
        return dg.AssetCheckResult(
            asset_key=["silver", "fruits"],
            check_name=name,
            passed=not failed,
            severity=severity,
            description=f"{int(failed)} of 4 rows break it.",
            metadata=found | ({"sample": sample} if failed else {}),
        )

    def run(self, *failing: str, only_checks: bool = False) -> None:
        """Compute the table; some of its checks fail."""
        self.failing = set(failing)
        graph, job = (
            self.definitions.resolve_asset_graph(),
            self.definitions.resolve_implicit_global_asset_job_def(),
        )
        key = dg.AssetKey(["silver", "fruits"])
        checks = set(graph.asset_check_keys)
        subset = job.get_subset(
            asset_selection=set() if only_checks else {key}, asset_check_selection=checks
        )
        subset.execute_in_process(instance=self.instance, raise_on_error=False, tags=self.tags)

    def work(self, error: Exception | None = None) -> None:
        """Run the job."""
        self.error = error
        self.definitions.resolve_job_def("upkeep").execute_in_process(
            instance=self.instance, raise_on_error=False
        )
        self.error = None

    def context(
        self, names: Collection[str] = (), later: timedelta = timedelta()
    ) -> MonitorContext:
        graph, now = self.definitions.resolve_asset_graph(), datetime.now(UTC) + later
        tables = {TABLE.name: self.table}
        return MonitorContext(self.instance, graph, tables, (FEED,), self.settings, now, names)

    def round(self, names: Collection[str] = (), later: timedelta = timedelta()) -> list[Alert]:
        """Run a round, and return its messages."""
        detect_and_dispatch(self.context(names, later), logging.getLogger("lakehouse.alerts"))
        recorded = read_alerts(self.settings)
        new, self.known = recorded[self.known :], len(recorded)
        return new

    def titles(self, **how) -> list[str]:
        """Run a round, and return the titles of its messages."""
        return [alert.title for alert in self.round(**how)]

    def with_settings(self, **changes) -> "Watch":
        return replace(self, settings=replace(self.settings, **changes))
