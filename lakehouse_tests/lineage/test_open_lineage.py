"""Each write is told once as begun and once as ended, whatever becomes of its process; no
JVM.
"""

import json
import logging
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from lakehouse.iceberg.commit.branch import new_write_id
from lakehouse.iceberg.write.append_without_spark import append_once
from lakehouse.lineage import event_log
from lakehouse.lineage.event_log import EventLog
from lakehouse.lineage.names import name_of_location, run_id_of
from lakehouse.settings import Settings
from lakehouse_tests.lineage.core_schema import RUN_EVENT
from lakehouse_tests.lineage.told import (
    AT,
    DEATHS,
    NUMBERS,
    append,
    append_and_die,
    engine_at,
    events,
    types_by_run,
)
from lakehouse_tests.processes import KILLED, start

SECRET = "one@example.com"


@pytest.fixture
def file(settings: Settings) -> Path:
    return settings.openlineage_file


def test_a_write_is_told_as_begun_and_as_ended(settings: Settings, file: Path) -> None:
    run_id = str(uuid4())
    snapshot_id = append(engine_at(settings), run_id)

    begun, ended = events(file)
    assert (begun["eventType"], ended["eventType"]) == ("START", "COMPLETE")
    assert begun["run"]["runId"] == ended["run"]["runId"]
    assert begun["job"]["name"] == "monitoring.numbers"
    assert ended["run"]["facets"]["parent"]["run"]["runId"] == run_id
    (output,) = ended["outputs"]
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


def test_the_columns_are_told_with_their_types_and_what_they_mean(
    settings: Settings, file: Path
) -> None:
    append(engine_at(settings), "a")

    name, parts, *_ = events(file)[0]["outputs"][0]["facets"]["schema"]["fields"]
    assert (name["name"], name["type"], name["description"]) == ("name", "string", "What.")
    assert [part["name"] for part in parts["fields"]] == ["whole", "rest"]


def test_a_run_that_has_nothing_to_write_tells_nothing(settings: Settings, file: Path) -> None:
    engine = engine_at(settings)
    append(engine, "a")
    append(engine, "a")

    assert list(types_by_run(file).values()) == [["START", "COMPLETE"]]


def test_events_have_the_form_of_the_specification(settings: Settings, file: Path) -> None:
    append(engine_at(settings), str(uuid4()))

    validator = Draft202012Validator(
        RUN_EVENT, format_checker=Draft202012Validator.FORMAT_CHECKER
    )
    assert [
        error.message for event in events(file) for error in validator.iter_errors(event)
    ] == []


def test_a_write_that_fails_is_told_without_the_text_of_its_error(
    settings: Settings, file: Path
) -> None:
    row = {"name": "one", "at": AT, "run_id": "a", "parts": {"whole": SECRET}}
    with pytest.raises(Exception, match=SECRET):
        append_once(engine_at(settings), NUMBERS, [row], "a", made_at="at")

    assert list(types_by_run(file).values()) == [["START", "FAIL"]]
    assert SECRET not in file.read_text()
    assert events(file)[-1]["run"]["facets"]["errorMessage"]["message"].startswith("Arrow")


@pytest.mark.long
@pytest.mark.parametrize("at", DEATHS)
def test_the_next_writer_tells_the_end_of_a_killed_one(
    settings: Settings, file: Path, home: Path, at: str
) -> None:
    append(engine_at(settings), "before")
    died = start(home, append_and_die, at=at)
    assert died.status() == KILLED, died.said

    append(engine_at(settings), "after")

    has_published = at != "before the start is told"
    _, killed, _ = types_by_run(file).values()
    assert killed == ["START", "COMPLETE" if has_published else "ABORT"]
    assert not list(file.with_suffix("").glob("open/*/*"))


@pytest.mark.long
def test_a_killed_write_that_published_is_told_with_what_it_published(
    settings: Settings, file: Path, home: Path
) -> None:
    died = start(home, append_and_die, at="before the end is told")
    assert died.status() == KILLED, died.said
    append(engine_at(settings), "killed")

    _, ended = events(file)
    (output,) = ended["outputs"]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 1
    assert "version" in output["facets"]


def test_half_a_line_of_a_killed_process_costs_no_other_event(
    settings: Settings, file: Path
) -> None:
    engine = engine_at(settings)
    append(engine, "a")
    with file.open("ab") as half:
        half.write(b'{"eventType": "STA')
    append(engine, "b")

    lines = file.read_text().split("\n")
    assert [json.loads(line)["eventType"] for line in lines if line.endswith("}")] == [
        *("START", "COMPLETE"),
        *("START", "COMPLETE"),
    ]


def test_the_file_is_bounded_and_the_one_before_it_kept(
    settings: Settings, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "MAX_BYTES", 8_000)
    engine = engine_at(settings)
    for number in range(5):
        append(engine, f"run {number}")

    log = EventLog(file)
    kept = events(log.earlier) + events(file)
    assert file.stat().st_size <= 8_000
    assert log.earlier.stat().st_size <= 8_000
    assert kept[-1]["eventType"] == "COMPLETE"
    assert log.earlier.name == "openlineage.earlier.jsonl"


def test_a_write_goes_on_where_it_cannot_be_told(
    settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "no folder").touch()
    elsewhere = replace(settings, openlineage_path=tmp_path / "no folder" / "events.jsonl")

    with caplog.at_level(logging.WARNING, "lakehouse.lineage"):
        assert append(engine_at(elsewhere), "a") is not None

    assert "was not emitted" in caplog.text


def test_the_file_may_be_elsewhere_and_the_lakehouse_have_a_name(
    settings: Settings, tmp_path: Path
) -> None:
    named = replace(settings, openlineage_path=tmp_path / "events.jsonl", name="sales")
    append(engine_at(named), "a")

    assert {event["job"]["namespace"] for event in events(tmp_path / "events.jsonl")} == {
        "sales"
    }
    assert not settings.openlineage_file.exists()


def test_the_run_of_a_write_begins_with_its_time():
    write_id = new_write_id()
    run_id = UUID(run_id_of(write_id))

    assert run_id.version == 7
    assert run_id.variant == "specified in RFC 4122"
    assert run_id.hex[:12] == write_id[:12]


@given(st.text(max_size=40) | st.from_regex("[0-9a-f]{32}", fullmatch=True))
def test_a_write_has_one_run_whatever_its_id_is(write_id: str) -> None:
    assert UUID(run_id_of(write_id)) == UUID(run_id_of(write_id))
