"""Overdue tables and deliveries, until they are written."""

from dataclasses import replace
from datetime import timedelta

import dagster as dg
import pyarrow as pa
import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse_tests.alerts.watch import Watch

LATE = "feed fruits: the next delivery is overdue"


def delivered(watch: Watch):
    """Create a table that was just written."""
    (watch.settings.home / "warehouse").mkdir(parents=True, exist_ok=True)
    client = Catalog.of(watch.settings).client
    client.create_namespace("silver")
    rows = pa.table({"id": [1]})
    table = client.create_table("silver.fruits", rows.schema)
    table.append(rows)
    return table


@pytest.mark.long
def test_a_late_delivery_sends_one_message_and_its_resolution(watch: Watch) -> None:
    table = delivered(watch)
    assert watch.titles(later=timedelta(hours=5)) == []
    (alert,) = watch.round(later=timedelta(hours=7))
    assert alert.title == LATE
    assert "7 hours ago; expected every 6 hours." in alert.lines[0]
    assert watch.titles(later=timedelta(hours=8)) == []
    table.append(table.scan().to_arrow())
    assert watch.titles(later=timedelta(hours=5)) == [f"Resolved: {LATE}"]


def test_a_table_is_overdue_until_a_run_finds_it_up_to_date(watch: Watch) -> None:
    watch.table = replace(watch.table, freshness=timedelta(hours=2))
    delivered(watch)
    (alert,) = watch.round(later=timedelta(hours=3))
    assert alert.title == "silver.fruits is overdue"
    assert "Next: lakehouse ingest fruits" in alert.lines
    assert "3 hours ago; expected every 2 hours." in alert.lines[0]
    watch.instance.report_runless_asset_event(dg.AssetMaterialization(["silver", "fruits"]))
    assert watch.titles(later=timedelta(hours=1)) == ["Resolved: silver.fruits is overdue"]
