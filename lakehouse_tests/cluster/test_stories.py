"""Two days of transactions on a cluster that sees no file of the driver's, classic and through
Connect.
"""

from pathlib import Path

import pytest

from lakehouse.settings import Settings
from lakehouse_tests.cluster.lake import KINDS, lake_on
from lakehouse_tests.cluster.short_story import check_told, live_through
from lakehouse_tests.cluster.spark_cluster import SparkCluster

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("kind", KINDS)
def test_transactions_are_ingested_compacted_recomputed_and_a_person_is_erased(
    cluster: SparkCluster, aws_settings: Settings, tmp_path: Path, kind: str
) -> None:
    with lake_on(cluster, aws_settings, kind) as lake:
        check_told(lake.call(live_through, folder=str(tmp_path / "generated")))
