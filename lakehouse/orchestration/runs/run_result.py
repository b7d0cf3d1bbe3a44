"""Results of a run as plain values, from its events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import dagster as dg

from lakehouse.iceberg.frames.spark_errors import plain
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.failure_texts import OWN_ERROR, known_cause
from lakehouse.orchestration.metadata_keys import (
    UNCHANGED,
    CheckMetadata,
    LandingMetadata,
    QuarantineMetadata,
    WriteMetadata,
    plain_values,
)

FINISHED = [
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
]
"""The states of runs that have ended."""

Status = Literal["published", "unchanged", "failed", "not run"]
INTERRUPTED = "UNEXPECTED_TERMINATION"


@dataclass(frozen=True)
class AssetResult:
    """Result of one asset: metadata as plain values, and the error message."""

    table: str
    status: Status
    metadata: Mapping[str, Any]
    message: str = ""
    error: str = ""
    """Class name of the error if this package raised it."""

    @property
    def write(self) -> WriteMetadata:
        """State of the table and statistics of the write."""
        return WriteMetadata.from_metadata(self.metadata)

    @property
    def quarantine(self) -> QuarantineMetadata:
        """Quarantined rows."""
        return QuarantineMetadata.from_metadata(self.metadata)

    @property
    def landing(self) -> LandingMetadata:
        """Landed files."""
        return LandingMetadata.from_metadata(self.metadata)


@dataclass(frozen=True)
class CheckResult:
    """Result of one check."""

    table: str
    name: str
    passed: bool
    severity: Literal["ERROR", "WARN"]
    metadata: Mapping[str, Any]
    description: str = ""
    blocking: bool = False

    @property
    def evaluation(self) -> CheckMetadata:
        """Typed metadata of the check."""
        return CheckMetadata.from_metadata(self.metadata)


@dataclass(frozen=True)
class RunResult:
    """Result of a run. `message` is the error if no asset failed."""

    run_id: str
    success: bool
    assets: tuple[AssetResult, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    message: str = ""

    def asset(self, table: str) -> AssetResult | None:
        """Return the result of a table; None if it was not selected."""
        return next((asset for asset in self.assets if asset.table == table), None)

    @property
    def messages(self) -> tuple[str, ...]:
        """Errors: one for each failed asset and blocking check, or the error of the run."""
        failed = [asset for asset in self.assets if asset.status == "failed"]
        messages = [asset.message for asset in failed]
        failed_tables = {asset.table for asset in failed}
        for check in self.checks:
            stopped = check.blocking and not check.passed and check.severity == "ERROR"
            if stopped and check.table not in failed_tables:
                messages.append(
                    f"{check.table}: check {check.name} failed: {check.description}"
                )
        return tuple(messages) or ((self.message,) if self.message else ())


def read_result(ran: dg.ExecuteInProcessResult, tables: Mapping[str, str]) -> RunResult:
    """Return the result of a run.

    :param tables: tables by step key of the selected assets, in execution order.
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
            _text(event.job_failure_data.error)
            for event in events
            if event.is_job_failure and event.job_failure_data.error is not None
        ),
    )


def is_interrupted(ran: dg.ExecuteInProcessResult) -> bool:
    """Whether Ctrl-C interrupted the run."""
    for event in ran.all_events:
        reason = event.job_failure_data.failure_reason if event.is_job_failure else None
        if reason is not None and reason.value == INTERRUPTED:
            return True
    return False


def _asset(table: str, step: str, events: Sequence[dg.DagsterEvent]) -> AssetResult:
    for event in events:
        if event.is_step_failure and event.step_key == step:
            return _failed(table, event)
        if (
            event.is_step_materialization
            and event.asset_key
            and table_name(event.asset_key) == table
        ):
            stored = event.step_materialization_data.materialization.metadata
            published = AssetResult(table, "published", plain_values(stored))
            if published.write.operation == UNCHANGED:
                return replace(published, status="unchanged")
            return published
    return AssetResult(table, "not run", {})


def _check(event: dg.DagsterEvent) -> CheckResult:
    evaluation = event.asset_check_evaluation_data
    return CheckResult(
        table_name(evaluation.asset_key),
        evaluation.check_name,
        evaluation.passed,
        evaluation.severity.value,
        plain_values(evaluation.metadata),
        evaluation.description or "",
        bool(evaluation.blocking),
    )


def _failed(table: str, event: dg.DagsterEvent) -> AssetResult:
    data = event.step_failure_data
    if data.user_failure_data is None:
        return AssetResult(table, "failed", {}, _text(data.error), _own_error(data.error)[0])
    failure = data.user_failure_data
    message = failure.description or _text(data.error)
    return AssetResult(table, "failed", plain_values(failure.metadata), message)


def _own_error(error: Any) -> tuple[str, str]:
    """Return the class name and the text of an error that this package raised; else empty."""
    message: str = known_cause(error).message.strip()
    if not message.startswith(OWN_ERROR):
        return "", ""
    kind, _, text = message.removeprefix(OWN_ERROR).partition(": ")
    return kind, text or kind


def _text(error: Any) -> str:
    return _own_error(error)[1] or plain(known_cause(error).message.strip())
