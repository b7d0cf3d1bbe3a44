"""Events of writes with Spark: inputs by snapshot, results of rules, blocked writes."""

from dataclasses import replace
from uuid import uuid4

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.publish_blocked import publish_blocked
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import latest
from lakehouse.iceberg.rules.rows import between, not_null
from lakehouse.iceberg.values.write_result import Published, Refused, Unchanged
from lakehouse.iceberg.write.write_audit_publish import Run, write
from lakehouse.iceberg.write.write_preview import preview
from lakehouse.lineage.send_events import OpenLineageEvents
from lakehouse.settings import Settings
from lakehouse.tables.table import Append, Column, IcebergTable, Merge
from lakehouse_tests.iceberg.declarations import rows_of
from lakehouse_tests.lineage.appends import events

RAW = IcebergTable(
    name="bronze.raw",
    comment="As delivered.",
    columns=[Column("id", "int"), Column("v", "int")],
    write=Append(once_by=()),
)
CLEAN = IcebergTable(
    name="silver.clean",
    comment="One row for each id.",
    columns=[Column("id", "int"), Column("v", "int")],
    write=Merge(on=["id"]),
    rules=[not_null("id"), between("v", 0, 100, on_failure="block")],
)


@pytest.fixture
def emitting(embedded_engine: Engine, settings: Settings) -> Engine:
    return replace(
        embedded_engine, listener=OpenLineageEvents(settings, embedded_engine.catalog)
    )


def clean(engine: Engine):
    return write(engine, CLEAN, lambda raw: raw, {"raw": latest(RAW.name)})


@pytest.mark.long
@pytest.mark.spark
def test_each_write_has_its_inputs_and_outcome(emitting: Engine, settings: Settings) -> None:
    write(emitting, RAW, rows_of(emitting, "id int, v int", [(1, 10), (None, 20)]))
    published, unchanged = clean(emitting), clean(emitting)
    preview(emitting, CLEAN, lambda raw: raw, {"raw": latest(RAW.name)}, Run(), lambda _: None)
    write(emitting, RAW, rows_of(emitting, "id int, v int", [(2, 1000)]))
    read = read_history(emitting, RAW.name).main
    refused = clean(emitting)

    assert isinstance(published, Published)
    assert isinstance(unchanged, Unchanged)
    assert isinstance(refused, Refused)
    emitted = events(settings.openlineage_file)
    assert [
        (event["job"]["name"], event["eventType"]) for event in emitted if _is_end(event)
    ] == [
        ("bronze.raw", "COMPLETE"),
        ("silver.clean_quarantine", "COMPLETE"),
        ("silver.clean", "COMPLETE"),
        ("silver.clean_quarantine", "COMPLETE"),
        ("silver.clean", "COMPLETE"),
        ("bronze.raw", "COMPLETE"),
        ("silver.clean_quarantine", "COMPLETE"),
        ("silver.clean", "FAIL"),
    ]
    last = emitted[-1]
    assert last["run"]["facets"]["errorMessage"]["message"] == "Blocked by between_v."
    (source,) = last["inputs"]
    assert source["facets"]["version"]["datasetVersion"] == str(read.snapshot_id)
    assert source["name"] == emitted[0]["outputs"][0]["name"]
    results = last["outputs"][0]["facets"]["dataQualityAssertions"]["assertions"]
    assert {result["name"]: result["success"] for result in results}["between_v"] is False
    started = [event["run"]["runId"] for event in emitted if not _is_end(event)]
    assert sorted(started) == sorted(
        event["run"]["runId"] for event in emitted if _is_end(event)
    )


@pytest.mark.spark
def test_a_publish_against_the_rules_is_a_write_of_its_own(
    emitting: Engine, settings: Settings
) -> None:
    run = Run(str(uuid4()))
    write(emitting, RAW, rows_of(emitting, "id int, v int", [(1, 1000), (2, 1000)]))
    inputs = {"raw": latest(RAW.name)}
    assert isinstance(write(emitting, CLEAN, lambda raw: raw, inputs, run), Refused)
    published = publish_blocked(emitting, CLEAN, run.run_id, by="me", why="the rule is wrong")

    *_, failed, started, final = events(settings.openlineage_file)
    emitted_types = (failed, started, final)
    assert [event["eventType"] for event in emitted_types] == ["FAIL", "START", "COMPLETE"]
    assert started["run"]["runId"] == final["run"]["runId"] != failed["run"]["runId"]
    assert final["run"]["facets"]["parent"] == failed["run"]["facets"]["parent"]
    (table,), (source,), (read,) = final["outputs"], final["inputs"], failed["inputs"]
    assert table["facets"]["version"]["datasetVersion"] == str(published.snapshot_id)
    assert table["outputFacets"]["outputStatistics"]["rowCount"] == 2
    assert source["facets"]["version"] == read["facets"]["version"]


def _is_end(event: dict) -> bool:
    return event["eventType"] != "START"
