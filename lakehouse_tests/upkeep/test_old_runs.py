"""Old runs are forgotten, and not what the catalog shows."""

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from lakehouse.definitions import defs
from lakehouse.upkeep import old_runs
from lakehouse.upkeep.old_runs import forget_runs

pytestmark = pytest.mark.long

SOON = timedelta(hours=1)


def runs(instance: dg.DagsterInstance) -> set[str]:
    return {run.run_id for run in instance.get_runs()}


def test_old_runs_are_deleted_except_unfinished_ones_and_the_last_of_each_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(old_runs, "_BATCH", 2)
    days = ("a", "b", "c", "d", "e")

    @dg.asset(partitions_def=dg.StaticPartitionsDefinition(days))
    def by_day() -> None:
        """Something that is materialized by partitions."""

    with dg.instance_for_test() as instance:

        def compute(day: str) -> str:
            return dg.materialize([by_day], instance=instance, partition_key=day).run_id

        replaced = compute("a")
        kept = {compute(day) for day in days}
        kept.add(create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED).run_id)
        failed = create_run_for_test(instance, status=dg.DagsterRunStatus.FAILURE).run_id
        assert forget_runs(instance, datetime.now(UTC) - SOON) == 0
        assert runs(instance) == {replaced, failed, *kept}

        assert forget_runs(instance, datetime.now(UTC) + SOON) == 2
        assert runs(instance) == kept
        assert instance.get_materialized_partitions(by_day.key) == set(days)


def test_the_job_can_be_run() -> None:
    job = defs.get_repository_def().get_job("forget_old_runs")
    with dg.instance_for_test() as instance:
        old = create_run_for_test(instance, status=dg.DagsterRunStatus.FAILURE).run_id
        config = {"ops": {"forget_old": {"config": {"days": -1}}}}
        ran = job.execute_in_process(instance=instance, run_config=config)
        assert ran.success
        assert runs(instance) == {ran.run_id}
        assert old != ran.run_id
