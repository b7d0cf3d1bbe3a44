"""Where one table of a run fails, Dagster shows the checks of no other table as failed."""

import dagster as dg
import pytest

from lakehouse.orchestration.dagster_internals import check_executions
from lakehouse.orchestration.deployment import open_engine
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import materialize
from lakehouse.quality.metrics.anomaly_check import no_anomaly_checks
from lakehouse.quality.metrics.metric import NO_ANOMALY
from lakehouse.settings import Settings

pytestmark = pytest.mark.unit
NAMES = ["silver.good", "silver.broken"]


def test_only_the_check_of_the_failed_table_is_red(settings: Settings) -> None:
    good, broken = keys = [dg.AssetKey(name.split(".")) for name in NAMES]

    @dg.asset(key=good)
    def succeeds() -> None: ...

    @dg.asset(key=broken)
    def fails() -> None:
        raise ValueError

    definitions = dg.Definitions(
        assets=[succeeds, fails],
        asset_checks=no_anomaly_checks(NAMES, "monitoring.data_quality_metrics", {}),
        resources={"engine": open_engine(settings)},
    )
    with open_instance(settings) as instance:
        assert not materialize(definitions, instance, dg.AssetSelection.all()).success
        checks = [dg.AssetCheckKey(key, NO_ANOMALY) for key in keys]
        statuses = {
            check.asset_key: check_executions(instance, check, limit=1)[0].status.value
            for check in checks
        }
    # In a failed run, the UI shows a check that was only planned as failed.
    assert statuses == {good: "SUCCEEDED", broken: "PLANNED"}
