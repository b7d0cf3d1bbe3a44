"""A step of upkeep that failed, or left something behind, is told with table, step and paths,
until it goes through.
"""

from datetime import timedelta

import dagster as dg
import pytest

from lakehouse.errors import UpkeepFailed
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.upkeep_results import JOB, metadata_of
from lakehouse_tests.monitoring.watch import Watch

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


def keep(watch: Watch, *results: StepResult) -> None:
    """Run the job of upkeep, in which steps come to some results."""

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


@pytest.mark.long
def test_what_could_not_be_deleted_is_told_with_its_path_until_it_is_gone(
    watch: Watch,
) -> None:
    keep(watch, PARTIAL)
    (alert,) = watch.look()
    assert alert.title == f"{NAME}: expire_snapshots is done in part"
    assert (alert.severity, alert.table, alert.owner) == ("warn", NAME, "data-platform")
    assert alert.lines[:2] == (PARTIAL.reason, f"Still there: {PATH}")
    assert f"Next: lakehouse maintain {NAME}" in alert.lines
    assert watch.says() == []

    keep(watch, StepResult(NAME, "compact", "done"))
    assert watch.says() == []
    keep(watch, StepResult(NAME, "expire_snapshots", "done"))
    (over,) = watch.look()
    assert over.title == f"Resolved: {alert.title}"
    assert over.lines[0].startswith(f"expire_snapshots of {NAME} went through in run ")


@pytest.mark.long
def test_a_step_that_failed_is_one_message_beside_which_its_run_is_none(watch: Watch) -> None:
    keep(watch, PARTIAL, FAILED)
    titles = [alert.title for alert in watch.look(later=LATER)]
    assert sorted(titles) == [
        f"{NAME}: compact failed",
        f"{NAME}: expire_snapshots is done in part",
    ]
    keep(watch, FAILED)
    assert watch.says() == []


@pytest.mark.long
@pytest.mark.parametrize("is_personal", [True, False])
def test_what_others_say_of_a_failed_step_is_told_without_values(
    watch: Watch, is_personal: bool
) -> None:
    if not is_personal:
        columns = [column for column in watch.table.columns if not column.personal]
        watch.table = type(watch.table)(
            NAME, "Fruits.", columns, write=watch.table.write, owner="data-platform"
        )
    keep(watch, BY_SPARK)
    (alert,) = watch.look(later=LATER)
    assert "one@example.com" not in "\n".join(alert.lines)
    expected = "cannot read …" if not is_personal else None
    assert any(line == f"Py4JJavaError: {expected}" for line in alert.lines) != is_personal
    assert any(line.startswith("Py4JJavaError") for line in alert.lines)


def test_that_a_writer_came_first_is_no_message(watch: Watch) -> None:
    reason = f"another commit to {NAME} came first, after some of the files"
    keep(
        watch,
        StepResult(NAME, "compact", "partial", reason, lost_race=True),
        StepResult(NAME, "expire_snapshots", "skipped", "it is written", lost_race=True),
    )
    assert watch.says(later=LATER) == []


def test_upkeep_that_fails_before_any_step_is_a_failed_run(watch: Watch) -> None:
    @dg.op
    def do_what_is_due() -> None:
        raise ValueError("broken")

    @dg.job(name=JOB)
    def maintain_tables() -> None:
        do_what_is_due()

    maintain_tables.execute_in_process(instance=watch.instance, raise_on_error=False)
    assert watch.says() == [f"job {JOB}: the run failed"]
