"""What stands in an inbox and is no file: it is named once, and never waited for."""

import os
import socket
from pathlib import Path

import pytest

from lakehouse.cli.output.ingest_report import summarize
from lakehouse.ingestion.collect import list_waiting
from lakehouse.ingestion.feed_runs import IngestResult
from lakehouse.ingestion.skipped_entries import passed_over_lines, report_passed_over
from lakehouse.orchestration.incident_reports import read_reports
from lakehouse.settings import Settings
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse.storage.object_store import PassedOver
from lakehouse_tests.ingestion.conftest import FRUITS

ROW = "id,fruit,berry\n1,Apple,false\n"
NEXT_STEP = "Copy the file itself into the inbox, or remove this from it."


@pytest.fixture
def folder(inbox, tmp_path: Path, monkeypatch) -> Path:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.csv").write_text(ROW)
    made = inbox.put("a.csv", ROW).parent
    (made / "link.csv").symlink_to(tmp_path / "elsewhere" / "x.csv")
    (made / ".hidden.csv").symlink_to(tmp_path / "elsewhere" / "x.csv")
    (made / "more").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(made / "pi pe.csv")
    # The path of a socket may be short only.
    monkeypatch.chdir(made)
    with socket.socket(socket.AF_UNIX) as made_here:
        made_here.bind("s.csv")
    return made


def test_each_is_named_and_the_files_are_taken(inbox, folder: Path) -> None:
    found = list_waiting(FRUITS, inbox.store)

    assert [(one.key.removeprefix("inbox/fruits/"), one.kind) for one in found.passed_over] == [
        ("link.csv", "a link"),
        ("more", "a link"),
        ("pi pe.csv", "a pipe"),
        ("s.csv", "a socket"),
    ]
    assert inbox.look().values("_source_file") == [("a.csv",)]
    assert (folder / "link.csv").is_symlink()


def test_an_ingest_says_so(inbox, folder: Path) -> None:
    found = list_waiting(FRUITS, inbox.store)
    said = summarize(IngestResult(FRUITS, passed_over=passed_over_lines(found.passed_over)))

    assert f"  inbox/fruits/link.csv is a link, and is passed over. {NEXT_STEP}" in said
    assert f"  'inbox/fruits/pi pe.csv' is a pipe, and is passed over. {NEXT_STEP}" in said
    assert (folder / "a.csv").exists()


def test_a_sensor_tells_of_each_once_until_it_is_gone(settings: Settings) -> None:
    pipe, link = PassedOver("inbox/fruits/a", "a pipe"), PassedOver("inbox/fruits/b", "a link")

    assert len(report_passed_over(settings, FRUITS, [pipe])) == 1
    assert report_passed_over(settings, FRUITS, [pipe]) == []
    assert report_passed_over(settings, FRUITS, [pipe, link]) == [
        f"inbox/fruits/b is a link, and is passed over. {NEXT_STEP}"
    ]
    assert report_passed_over(settings, FRUITS, []) == []
    assert len(report_passed_over(settings, FRUITS, [pipe])) == 1

    noted = [
        (note.report.title, note.report.severity, note.resolved)
        for note in read_reports(settings)
    ]
    assert ("feed fruits: inbox/fruits/b is a link, and is passed over", "warn", "") in noted
    assert sum(1 for *_, resolved in noted if resolved == "It is no longer in the inbox.") == 2


def test_a_link_whose_name_is_no_utf_8_is_told_too(settings: Settings) -> None:
    link = PassedOver("inbox/fruits/\udcff", "a link")

    assert len(report_passed_over(settings, FRUITS, [link])) == 1
    assert report_passed_over(settings, FRUITS, [link]) == []


def test_a_pipe_that_took_a_files_place_is_not_waited_for(home: Path) -> None:
    store = LocalObjectStore(home)
    (home / "inbox").mkdir(parents=True)
    os.mkfifo(home / "inbox" / "a.csv")
    (home / "inbox" / "b.csv").symlink_to(home / "inbox" / "a.csv")

    for name in ("a.csv", "b.csv"):
        with pytest.raises(FileNotFoundError):
            store.open(f"inbox/{name}")


def test_a_missing_inbox_is_not_an_empty_one(inbox) -> None:
    found = list_waiting(FRUITS, inbox.store)
    folder = inbox.store.root / "inbox" / "fruits"
    assert found.missing == str(folder)
    said, *_ = summarize(IngestResult(FRUITS, missing=found.missing))
    assert said == (
        f"Feed fruits: no new file; files are put into the folder {folder}, which is not"
        " there yet"
    )

    folder.mkdir(parents=True)
    assert list_waiting(FRUITS, inbox.store).missing is None
    assert summarize(IngestResult(FRUITS))[0] == "Feed fruits: no new file in inbox/fruits/"


def test_what_this_user_cannot_read_is_named_and_the_files_beside_it_are_taken(
    inbox, monkeypatch
) -> None:
    inbox.put("a.csv", ROW)
    inbox.put("closed.csv", ROW)
    inbox.put("closed/b.csv", ROW)
    # Who runs the tests as root may read everything.
    may = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: "closed" not in str(path) and may(path, mode)
    )

    found = list_waiting(FRUITS, inbox.store)

    assert [(one.key, one.kind) for one in found.passed_over] == [
        ("inbox/fruits/closed", "a folder that this user cannot read"),
        ("inbox/fruits/closed.csv", "a file that this user cannot read"),
    ]
    assert inbox.look().values("_source_file") == [("a.csv",)]
