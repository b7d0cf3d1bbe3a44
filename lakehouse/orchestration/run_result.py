"""What became of a run, in plain values read from its events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import dagster as dg

from lakehouse.iceberg.metadata.spark_errors import plain
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.error_causes import OURS, known_cause

Status = Literal["published", "unchanged", "failed", "not run"]
INTERRUPTED = "UNEXPECTED_TERMINATION"


@dataclass(frozen=True)
class AssetResult:
    """What became of one asset: its metadata in plain values, and why it failed where it
    did.
    """

    table: str
    status: Status
    metadata: Mapping[str, Any]
    message: str = ""


@dataclass(frozen=True)
class CheckResult:
    """What one check found."""

    table: str
    name: str
    passed: bool
    severity: Literal["ERROR", "WARN"]
    metadata: Mapping[str, Any]
    description: str = ""
    blocking: bool = False


@dataclass(frozen=True)
class RunResult:
    """What became of a run. `message` says why it failed where no asset did."""

    run_id: str
    success: bool
    assets: tuple[AssetResult, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    message: str = ""

    def asset(self, table: str) -> AssetResult | None:
        """Return what became of a table; None where it was not selected."""
        return next((found for found in self.assets if found.table == table), None)

    @property
    def messages(self) -> tuple[str, ...]:
        """Why it failed: one text for each asset that did, for each check that stopped it, or
        that of the run.
        """
        said = tuple(found.message for found in self.assets if found.status == "failed")
        refused = {found.table for found in self.assets if found.status == "failed"}
        said += tuple(
            f"{check.table}: check {check.name} failed: {check.description}"
            for check in self.checks
            if check.blocking
            and not check.passed
            and check.severity == "ERROR"
            and check.table not in refused
        )
        return said or ((self.message,) if self.message else ())


def read_result(ran: dg.ExecuteInProcessResult, tables: Mapping[str, str]) -> RunResult:
    """Return what became of a run.

    :param tables: the selected assets' tables by the keys of their steps, in the order of
        execution.
    """
    events = ran.all_events
    return RunResult(
        ran.run_id,
        ran.success,
        assets=tuple(_asset(table, step, events) for step, table in tables.items()),
        checks=tuple(
            _check(event)
            for event in events
            if event.event_type_value == "ASSET_CHECK_EVALUATION"
        ),
        message="; ".join(
            _text(event.job_failure_data.error) for event in events if _failed_by_itself(event)
        ),
    )


def is_interrupted(ran: dg.ExecuteInProcessResult) -> bool:
    """Whether the run ended by Ctrl-C."""
    last = [
        event.job_failure_data.failure_reason
        for event in ran.all_events
        if event.is_job_failure
    ]
    return any(reason is not None and reason.value == INTERRUPTED for reason in last)


def _asset(table: str, step: str, events: Sequence[dg.DagsterEvent]) -> AssetResult:
    for event in events:
        if event.is_step_failure and event.step_key == step:
            return _failed(table, event)
        if (
            event.is_step_materialization
            and event.asset_key
            and table_name(event.asset_key) == table
        ):
            found = event.step_materialization_data.materialization.metadata
            metadata = _plain(found)
            unchanged = metadata.get("iceberg/operation") == "unchanged"
            return AssetResult(table, "unchanged" if unchanged else "published", metadata)
    return AssetResult(table, "not run", {})


def _check(event: dg.DagsterEvent) -> CheckResult:
    found = event.asset_check_evaluation_data
    table = table_name(found.asset_key)
    return CheckResult(
        table,
        found.check_name,
        found.passed,
        found.severity.value,
        _plain(found.metadata),
        found.description or "",
        bool(found.blocking),
    )


def _failed(table: str, event: dg.DagsterEvent) -> AssetResult:
    data = event.step_failure_data
    if data.user_failure_data is None:
        return AssetResult(table, "failed", {}, _text(data.error))
    said = data.user_failure_data
    return AssetResult(
        table, "failed", _plain(said.metadata), said.description or _text(data.error)
    )


def _failed_by_itself(event: dg.DagsterEvent) -> bool:
    return event.is_job_failure and event.job_failure_data.error is not None


def _text(error: Any) -> str:
    message: str = known_cause(error).message.strip()
    if not message.startswith(OURS):
        return plain(message)
    # The text makes the kind of error plain.
    kind, _, text = message.removeprefix(OURS).partition(": ")
    return text or kind


def _plain(metadata: Mapping[str, dg.MetadataValue]) -> dict[str, Any]:
    """Return metadata as the values that it was made from."""
    return {name: _plain_value(value) for name, value in metadata.items()}


def _plain_value(value: dg.MetadataValue) -> Any:
    return (
        [dict(record.data) for record in value.records]
        if isinstance(value, dg.TableMetadataValue)
        else value.value
    )
