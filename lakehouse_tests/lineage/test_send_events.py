"""Each write has one START and one final event, even if its process is killed; no JVM."""

import logging
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from lakehouse.iceberg.write.append_without_spark import append_once
from lakehouse.lineage import send_events
from lakehouse.lineage.names import name_of_location
from lakehouse.lineage.send_events import EventLog
from lakehouse.settings import Settings
from lakehouse_tests.lineage.appends import AT, NUMBERS, append, engine_at, events, types_by_run

SECRET = "one@example.com"


@pytest.fixture
def file(settings: Settings) -> Path:
    return settings.openlineage_file


def test_a_write_has_a_start_and_a_final_event(settings: Settings, file: Path) -> None:
    run_id = str(uuid4())
    snapshot_id = append(engine_at(settings), run_id)

    start_event, final = events(file)
    assert (start_event["eventType"], final["eventType"]) == ("START", "COMPLETE")
    assert start_event["run"]["runId"] == final["run"]["runId"]
    assert start_event["job"]["name"] == "monitoring.numbers"
    assert final["run"]["facets"]["parent"]["run"]["runId"] == run_id
    (output,) = final["outputs"]
    assert output["facets"]["version"]["datasetVersion"] == str(snapshot_id)
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 1


def test_a_table_is_named_by_its_files_and_by_its_catalog(
    settings: Settings, file: Path
) -> None:
    engine = engine_at(settings)
    append(engine, "a")

    (output,) = events(file)[-1]["outputs"]
    assert output["namespace"] == "file"
    assert f"file://{output['name']}" == engine.catalog.load(NUMBERS.name).location()
    (other,) = output["facets"]["symlinks"]["identifiers"]
    assert other["name"] == "monitoring.numbers"
    assert other["namespace"] == f"sqlite:///{settings.home}/catalog.db"


def test_on_aws_a_table_is_named_by_its_bucket_and_by_glue(aws_settings: Settings) -> None:
    engine = engine_at(aws_settings)
    append(engine, "a")

    (output,) = events(aws_settings.openlineage_file)[-1]["outputs"]
    assert output["namespace"] == "s3://lake"
    assert f"s3://lake/{output['name']}" == engine.catalog.load(NUMBERS.name).location()
    (other,) = output["facets"]["symlinks"]["identifiers"]
    assert other["namespace"] == "arn:aws:glue:eu-central-1:123456789012"
    assert other["name"] == "table/monitoring/numbers"
    assert output["facets"]["catalog"]["type"] == "glue"


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("s3://lake/warehouse/silver/fruits-1", ("s3://lake", "warehouse/silver/fruits-1")),
        ("file:///lake/a b/c#d", ("file", "/lake/a b/c#d")),
        ("file:/lake/a", ("file", "/lake/a")),
        ("/lake/a", ("file", "/lake/a")),
    ],
)
def test_a_name_of_files_is_that_of_the_specification(location, name):
    assert name_of_location(location) == name


def test_columns_have_types_and_descriptions(settings: Settings, file: Path) -> None:
    append(engine_at(settings), "a")

    name, parts, *_ = events(file)[0]["outputs"][0]["facets"]["schema"]["fields"]
    assert (name["name"], name["type"], name["description"]) == ("name", "string", "The name.")
    assert [part["name"] for part in parts["fields"]] == ["whole", "rest"]


def test_a_run_without_new_rows_has_no_event(settings: Settings, file: Path) -> None:
    engine = engine_at(settings)
    append(engine, "a")
    append(engine, "a")

    assert list(types_by_run(file).values()) == [["START", "COMPLETE"]]


def test_a_failure_does_not_contain_the_text_of_its_error(
    settings: Settings, file: Path
) -> None:
    row = {"name": "one", "at": AT, "run_id": "a", "parts": {"whole": SECRET}}
    with pytest.raises(Exception, match=SECRET):
        append_once(engine_at(settings), NUMBERS, [row], "a", made_at="at")

    assert list(types_by_run(file).values()) == [["START", "FAIL"]]
    assert SECRET not in file.read_text()
    assert events(file)[-1]["run"]["facets"]["errorMessage"]["message"].startswith("Arrow")


def test_the_file_is_bounded_and_the_previous_one_retained(
    settings: Settings, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send_events, "MAX_BYTES", 8_000)
    engine = engine_at(settings)
    for number in range(5):
        append(engine, f"run {number}")

    log = EventLog(file)
    kept = events(log.earlier) + events(file)
    assert file.stat().st_size <= 8_000
    assert log.earlier.stat().st_size <= 8_000
    assert kept[-1]["eventType"] == "COMPLETE"
    assert log.earlier.name == "openlineage.earlier.jsonl"


def test_a_write_succeeds_without_its_events(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.openlineage_file.mkdir(parents=True)

    with caplog.at_level(logging.WARNING, "lakehouse.lineage"):
        assert append(engine_at(settings), "a") is not None

    assert "was not emitted" in caplog.text


def test_the_namespace_can_be_set(settings: Settings, file: Path) -> None:
    append(engine_at(replace(settings, name="sales")), "a")

    assert [event["job"]["namespace"] for event in events(file)] == ["sales"] * 2
