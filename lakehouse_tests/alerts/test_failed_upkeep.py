"""Maintenance steps that failed or left files behind, until they succeed."""

from datetime import timedelta

import dagster as dg
import pytest

from lakehouse.errors import UpkeepFailed
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.runs.upkeep_results import JOB, metadata_of
from lakehouse_tests.alerts.watch import Watch

NAME = "silver.fruits"
PATH = "file:/warehouse/silver/fruits/data/a.parquet"
LATER = timedelta(minutes=3)
PARTIAL = StepResult(
    NAME,
    "expire_snapshots",
    "partial",
    "1 files could not be deleted",
    {"seconds": 1.0},
    (PATH,),
)
FAILED = StepResult(NAME, "compact", "failed", "9 rows became 8 from snapshot 1 to 2")
BY_SPARK = StepResult(
    NAME, "compact", "failed", "cannot read 'one@example.com'", error="Py4JJavaError"
)


def maintain(watch: Watch, *results: StepResult) -> None:
    """Run the maintenance job with the results of its steps."""

    @dg.op
    def do_what_is_due(context: dg.OpExecutionContext) -> None:
        for result in results:
            metadata = metadata_of(result)
            context.log_event(dg.AssetObservation(asset_key(result.table), metadata=metadata))
        if any(result.outcome == "failed" for result in results):
            raise UpkeepFailed("a step failed", next_step="Wait.")

    @dg.job(name=JOB)
    def maintain_tables() -> None:
        do_what_is_due()

    maintain_tables.execute_in_process(instance=watch.instance, raise_on_error=False)


def test_remaining_files_are_shown(watch: Watch) -> None:
    maintain(watch, PARTIAL)
    (alert,) = watch.round()
    assert alert.title == f"{NAME}: expire_snapshots is partial"
    assert (alert.severity, alert.table, alert.owner) == ("warn", NAME, "data-platform")
    assert alert.lines[:2] == (PARTIAL.reason, f"Remaining: {PATH}")
    assert f"Next: lakehouse maintain {NAME}" in alert.lines


@pytest.mark.long
def test_only_the_success_of_the_same_step_resolves_it(watch: Watch) -> None:
    maintain(watch, PARTIAL)
    (alert,) = watch.round()
    maintain(watch, StepResult(NAME, "compact", "done"))
    assert watch.titles() == []
    maintain(watch, StepResult(NAME, "expire_snapshots", "done"))
    (over,) = watch.round()
    assert over.title == f"Resolved: {alert.title}"
    assert over.lines[0].startswith(f"expire_snapshots of {NAME} succeeded in run ")


@pytest.mark.long
def test_a_failed_step_is_an_incident_and_its_run_is_not(watch: Watch) -> None:
    maintain(watch, PARTIAL, FAILED)
    titles = [alert.title for alert in watch.round(later=LATER)]
    assert sorted(titles) == [
        f"{NAME}: compact failed",
        f"{NAME}: expire_snapshots is partial",
    ]
    maintain(watch, FAILED)
    assert watch.titles() == []


@pytest.mark.long
@pytest.mark.parametrize("is_personal", [True, False])
def test_an_error_of_a_library_is_shown_without_values(watch: Watch, is_personal: bool) -> None:
    if not is_personal:
        columns = [column for column in watch.table.columns if not column.personal]
        watch.table = type(watch.table)(
            NAME, "Fruits.", columns, write=watch.table.write, owner="data-platform"
        )
    maintain(watch, BY_SPARK)
    (alert,) = watch.round(later=LATER)
    assert "one@example.com" not in "\n".join(alert.lines)
    expected = "cannot read …" if not is_personal else None
    assert any(line == f"Py4JJavaError: {expected}" for line in alert.lines) != is_personal
    assert any(line.startswith("Py4JJavaError") for line in alert.lines)


def test_a_step_that_lost_against_a_writer_is_no_incident(watch: Watch) -> None:
    reason = f"another commit to {NAME} came first, after some of the files"
    maintain(
        watch,
        StepResult(NAME, "compact", "partial", reason, had_conflict=True),
        StepResult(NAME, "expire_snapshots", "skipped", "it is written", had_conflict=True),
    )
    assert watch.titles(later=LATER) == []


def test_a_job_that_fails_before_its_first_step_is_a_failed_run(watch: Watch) -> None:
    @dg.op
    def do_what_is_due() -> None:
        raise ValueError("broken")

    @dg.job(name=JOB)
    def maintain_tables() -> None:
        do_what_is_due()

    maintain_tables.execute_in_process(instance=watch.instance, raise_on_error=False)
    assert watch.titles() == [f"job {JOB}: the run failed"]
