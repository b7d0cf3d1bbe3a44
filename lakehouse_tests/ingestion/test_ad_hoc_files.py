"""Files that a person names: copied from wherever they are, which stays as it is."""

import http.server
import os
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.ingestion.ad_hoc_files import (
    copy_ad_hoc_files,
    list_passed_over,
    require_copies,
    select_store,
)
from lakehouse.settings import Settings
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse.storage.stores import open_store
from lakehouse_tests.ingestion.conftest import FRUITS

ROW = "id,fruit,berry\n1,Apple,false\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "given"
    (made / "deeper").mkdir(parents=True)
    for name in ("a.csv", "deeper/b.csv", ".hidden.csv"):
        (made / name).write_text(ROW)
    return made


@pytest.fixture
def served(folder: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def send_header(self, keyword: str, value: str) -> None:
            is_cut = keyword == "Content-Length" and "cut" in self.path
            super().send_header(keyword, f"{int(value) + 5}" if is_cut else value)

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def names(settings: Settings, path: object) -> list[str]:
    with copy_ad_hoc_files(settings, FRUITS, str(path)) as copies:
        store = select_store(LocalObjectStore(settings.home), FRUITS, str(copies))
        found = sorted(
            item.key.removeprefix(FRUITS.inbox) for item in store.objects(FRUITS.inbox)
        )
    assert not copies.exists()
    return found


def test_a_file_and_a_folder_are_taken(settings: Settings, folder: Path) -> None:
    assert names(settings, folder / "a.csv") == ["a.csv"]
    assert names(settings, folder) == ["a.csv", "deeper/b.csv"]
    assert names(settings, folder.as_uri()) == ["a.csv", "deeper/b.csv"]
    assert sorted(path.name for path in folder.rglob("*.csv")) == [
        ".hidden.csv",
        "a.csv",
        "b.csv",
    ]


def test_links_and_pipes_in_a_folder_are_passed_over_and_named(
    settings: Settings, folder: Path
) -> None:
    (folder / "link.csv").symlink_to(folder / "a.csv")
    (folder / "others").symlink_to(folder / "deeper")
    (folder / "notes.txt").symlink_to(folder / "a.csv")
    os.mkfifo(folder / "pipe.csv")

    assert names(settings, folder) == ["a.csv", "deeper/b.csv"]
    found = list_passed_over(FRUITS, str(folder))
    assert [(Path(one.key).name, one.kind) for one in found] == [
        ("link.csv", "a link"),
        ("others", "a link"),
        ("pipe.csv", "a pipe"),
    ]
    # Who names a link means what it leads to.
    assert names(settings, folder / "link.csv") == ["link.csv"]
    assert names(settings, folder / "others") == ["b.csv"]
    assert list_passed_over(FRUITS, str(folder / "link.csv")) == []


def test_an_address_is_downloaded(settings: Settings, served: str, folder: Path) -> None:
    with copy_ad_hoc_files(settings, FRUITS, f"{served}/a.csv") as copies:
        (copy,) = LocalObjectStore(copies).objects(FRUITS.inbox)
    assert (copy.key, copy.size_bytes) == ("inbox/fruits/a.csv", len(ROW))
    assert copy.modified_at.timestamp() == int((folder / "a.csv").stat().st_mtime)


def test_an_address_that_does_not_answer_is_named(settings: Settings, served: str) -> None:
    with pytest.raises(LakehouseError, match=f"{served}/z.csv was not read: HTTP Error 404"):
        names(settings, f"{served}/z.csv")


def test_a_download_that_is_cut_off_is_not_ingested(settings: Settings, served: str) -> None:
    with pytest.raises(LakehouseError, match="closed 5 bytes before the end"):
        names(settings, f"{served}/a.csv?cut")
    with pytest.raises(LakehouseError, match="URL can't contain control characters"):
        names(settings, f"{served}/a b.csv")


OBJECTS = ["exports/a#1.csv", "exports/deeper/b?x=1.csv", "exports/a", "exp#orts/c.csv"]
BOTH = ["a#1.csv", "deeper/b?x=1.csv"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("exports/a#1.csv", ["a#1.csv"]),
        ("exports", BOTH),
        ("s3://lake/exports/", BOTH),
        ("s3://lake/exports/a#1.csv", ["a#1.csv"]),
        ("S3A://lake/exports/deeper/b?x=1.csv", ["b?x=1.csv"]),
        ("s3://lake/exp#orts/", ["c.csv"]),
    ],
)
def test_a_key_a_prefix_and_an_s3_address_are_taken_as_they_are(
    aws_settings: Settings, path: str, expected: list[str]
) -> None:
    store = open_store(aws_settings)
    for key in OBJECTS:
        store.write_text(key, ROW)

    assert names(aws_settings, path) == expected
    assert len(store.objects("exports/")) == 3


def test_a_key_with_an_empty_part_stays_in_the_folder_of_the_copies(
    aws_settings: Settings, tmp_path: Path
) -> None:
    store = open_store(aws_settings)
    own = tmp_path / "own.csv"
    own.write_text("mine")
    store.write_text(f"exports/{own}", ROW)

    assert names(aws_settings, "s3://lake/exports") == [str(own).removeprefix("/")]
    assert own.read_text() == "mine"


@pytest.mark.parametrize(
    "keys",
    [
        ["exports/.."],
        ["exports/d/a.csv", "exports/d//a.csv"],
        ["exports/a.csv", "exports/a.csv/b/c.csv"],
        [f"exports/{'é' * 130}.csv/a.csv"],
    ],
)
def test_a_key_that_cannot_be_a_file_of_the_inbox_is_an_error(
    aws_settings: Settings, keys: list[str]
) -> None:
    store = open_store(aws_settings)
    for key in keys:
        store.client.put_object(Bucket=store.bucket, Key=key, Body=ROW.encode())

    with pytest.raises(UsageError, match=r"s3://lake/exports/.* cannot be copied"):
        names(
            aws_settings,
            "s3://lake/exports/.." if keys == ["exports/.."] else "s3://lake/exports",
        )


@pytest.mark.parametrize(
    "path", ["", " ", "file:", "file://", "s3:", "s3:/b/a", "s3://", "s3:///a.csv"]
)
def test_a_path_that_names_nothing_is_rejected(
    settings: Settings, folder: Path, monkeypatch, path: str
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(
        UsageError,
        match=r"which is empty; expected a file, a folder or an address\. Use '\.'",
    ):
        names(settings, path)
    assert names(settings, ".") == ["a.csv", "deeper/b.csv"]


def test_nothing_at_a_path_is_told(settings: Settings, folder: Path) -> None:
    for path in (folder / "none.csv", folder / ".hidden.csv"):
        with pytest.raises(UsageError, match="There is no file at"):
            names(settings, path)


def test_a_copy_goes_where_a_delivered_file_goes(settings: Settings, folder: Path) -> None:
    base = LocalObjectStore(settings.home)
    with copy_ad_hoc_files(settings, FRUITS, str(folder / "a.csv")) as copies:
        store = select_store(base, FRUITS, str(copies))
        (seen,) = store.objects(FRUITS.inbox)
        with store.open(seen.key) as raw:
            assert raw.read() == ROW.encode()
        assert store.move(seen, "archive/fruits/a.csv")
        assert not store.move(seen, "archive/fruits/b.csv")
        assert store.objects(FRUITS.inbox) == []
    assert base.exists("archive/fruits/a.csv")
    assert (folder / "a.csv").exists()


def test_a_run_without_its_copies_names_the_command_to_run_again(tmp_path: Path) -> None:
    require_copies(FRUITS, str(tmp_path), "a.csv")
    with pytest.raises(UsageError, match=r"`lakehouse ingest fruits --path 'a b\.csv'` again"):
        require_copies(FRUITS, str(tmp_path / "deleted"), "a b.csv")
