"""A folder as an object store: listings, moves and exchanges of unchanged files."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from lakehouse.errors import UsageError
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse.storage.object_store import ObjectStore
from lakehouse.storage.stores import open_store
from lakehouse.storage.unfinished_files import is_finished


@pytest.fixture
def store(tmp_path: Path) -> LocalObjectStore:
    return LocalObjectStore(tmp_path / "home")


@pytest.fixture(params=["folder", "bucket"])
def any_store(request: pytest.FixtureRequest) -> ObjectStore:
    """Each kind of store."""
    if request.param == "folder":
        return request.getfixturevalue("store")
    return open_store(request.getfixturevalue("aws_settings"))


def content(store: ObjectStore, key: str) -> str | None:
    if not store.exists(key):
        return None
    with store.open(key) as raw:
        return raw.read().decode()


def test_finished_and_unfinished_objects_are_listed(any_store: ObjectStore) -> None:
    for key in ("f/a", "f/d/c", "g/a", "f/.hidden", "f/a.tmp"):
        any_store.write_text(key, "é")

    objects = any_store.objects("f/")

    assert {item.key for item in objects} == {"f/a", "f/d/c"}
    assert objects == sorted(objects, key=lambda item: (item.modified_at, item.key))
    assert objects == [any_store.stat(item.key) for item in objects]
    assert {item.key for item in any_store.unfinished("f/")} == {"f/.hidden", "f/a.tmp"}
    assert content(any_store, "f/a") == "é"


def test_a_missing_object_is_not_found(any_store: ObjectStore) -> None:
    assert any_store.objects("f/") == []
    assert any_store.stat("a") is None
    with pytest.raises(FileNotFoundError):
        any_store.open("a")


def test_an_object_is_moved(any_store: ObjectStore) -> None:
    any_store.write_text("a", "text")

    assert any_store.move(any_store.stat("a"), "d/e/b")

    assert (content(any_store, "a"), content(any_store, "d/e/b")) == (None, "text")


def test_a_changed_object_is_neither_moved_nor_removed_nor_exchanged(any_store, tmp_path):
    any_store.write_text("f/a", "old")
    seen = any_store.stat("f/a")
    any_store.write_text("f/a", "newer")
    (tmp_path / "file").write_text("other")

    assert not any_store.move(seen, "f/b")
    assert not any_store.remove(seen)
    assert any_store.exchange(seen, tmp_path / "file") is None

    assert (content(any_store, "f/a"), content(any_store, "f/b")) == ("newer", None)
    assert any_store.unfinished("f/") == []


def test_nothing_is_moved_over_another_object(any_store: ObjectStore) -> None:
    any_store.write_text("a", "one")
    any_store.write_text("b", "two")

    with pytest.raises(FileExistsError):
        any_store.move(any_store.stat("a"), "b")

    assert (content(any_store, "a"), content(any_store, "b")) == ("one", "two")


def test_an_object_is_replaced(any_store: ObjectStore, tmp_path: Path) -> None:
    any_store.write_text("d/a", "old")
    (tmp_path / "file").write_text("new")

    any_store.put(tmp_path / "file", "d/a")
    assert content(any_store, "d/a") == "new"

    (tmp_path / "file").write_text("exchanged")
    assert any_store.exchange(any_store.stat("d/a"), tmp_path / "file") == any_store.stat("d/a")
    assert content(any_store, "d/a") == "exchanged"
    assert [item.key for item in any_store.remains("d/")] == ["d/a"]


def test_objects_are_ordered_by_time_then_key(store) -> None:
    for key, second in (("inbox/f/b", 1), ("inbox/f/a", 2), ("inbox/f/d/c", 1)):
        store.write_text(key, key)
        os.utime(store.root / key, (second, second))

    assert [item.key for item in store.objects("inbox/f/")] == [
        "inbox/f/b",
        "inbox/f/d/c",
        "inbox/f/a",
    ]


def test_the_folders_that_hold_anything_are_told_by_one_look(store) -> None:
    assert store.occupied("inbox/") == set()
    for key in ("inbox/full/a", "inbox/hidden/.a", "inbox/deep/d/a"):
        store.write_text(key, "")
    (store.root / "inbox" / "empty").mkdir()
    (store.root / "inbox" / "link").symlink_to(store.root / "inbox" / "empty")
    assert store.occupied("inbox/") == {"full", "hidden", "deep", "link"}


def test_a_folder_that_cannot_be_read_is_an_error(store, monkeypatch) -> None:
    store.write_text("inbox/f/a", "")

    def refused(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(PermissionError):
        store.objects("inbox/f/")


@pytest.mark.parametrize(
    "key", ["a.csv", "d/a.csv", "a.tmp.csv", "_a.csv", "a~b.csv", "part.csv"]
)
def test_a_delivery_is_finished(key: str) -> None:
    assert is_finished(key)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "d/",
        ".a.csv",
        "d/.a",
        "a.csv.tmp",
        "a.PART",
        "_SUCCESS",
        "d/_temporary/a",
        "a_$folder$",
    ],
)
def test_what_is_hidden_half_written_or_a_marker_is_not_finished(key: str) -> None:
    assert not is_finished(key)


def test_there_is_no_object_in_a_folder_or_a_link(store) -> None:
    store.write_text("d/a", "")
    (store.root / "link").symlink_to(store.root / "d" / "a")

    assert [key for key in ("d/a", "d", "link", "b") if store.exists(key)] == ["d/a"]


def test_times_are_whole_microseconds(store) -> None:
    store.write_text("a", "")
    os.utime(store.root / "a", ns=(1_234_567_890_123_456_789,) * 2)

    assert store.stat("a").modified_at.isoformat() == "2009-02-13T23:31:30.123456+00:00"


@pytest.fixture
def other_disk():
    """A folder on a disk of its own."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        pytest.skip("this machine has no second disk to move between")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def test_an_object_is_moved_from_another_disk(store, other_disk) -> None:
    store.root.mkdir()
    (store.root / "inbox").symlink_to(other_disk)
    (other_disk / "a").write_text("text")
    assert other_disk.stat().st_dev != store.root.stat().st_dev

    assert store.move(store.stat("inbox/a"), "archive/a")

    assert [path.name for path in other_disk.iterdir()] == []
    assert (store.root / "archive/a").read_text() == "text"


@pytest.mark.parametrize("meanwhile", ["removed", "overwritten"])
def test_a_file_that_changes_while_it_is_copied_from_another_disk_is_kept(
    store, other_disk, monkeypatch, meanwhile
) -> None:
    store.root.mkdir()
    (store.root / "inbox").symlink_to(other_disk)
    (other_disk / "a").write_text("old")
    put = LocalObjectStore.put

    def put_and_change(self: LocalObjectStore, source: Path, key: str) -> None:
        put(self, source, key)
        source.unlink() if meanwhile == "removed" else source.write_text("newer")

    monkeypatch.setattr(LocalObjectStore, "put", put_and_change)

    is_moved = store.move(store.stat("inbox/a"), "archive/a")

    assert is_moved is (meanwhile == "removed")
    expected = ("old", None) if is_moved else (None, "newer")
    assert (content(store, "archive/a"), content(store, "inbox/a")) == expected


@pytest.mark.parametrize("key", ["../a", "d/../../a", "/etc/passwd", ""])
def test_a_key_does_not_lead_out_of_the_folder(store, key: str) -> None:
    with pytest.raises(UsageError, match="is not a key"):
        store.open(key)


def test_files_of_long_names_are_exchanged_at_once(store, tmp_path: Path, monkeypatch) -> None:
    """Those of a delivery are, by threads; their names may begin alike."""
    keys = [f"inbox/sales/{'a' * 200}-{at}.csv" for at in range(2)]
    seen, contents = [], []
    for at, key in enumerate(keys):
        store.write_text(key, f"delivered {at}")
        seen.append(store.stat(key))
        contents.append(tmp_path / f"content-{at}")
        contents[at].write_text(f"rewritten {at}")
    copyfile, others = shutil.copyfile, [1]

    def copy_with_another(source: Path, target: Path) -> None:
        copyfile(source, target)
        while others:
            store.exchange(seen[1], contents[others.pop()])

    monkeypatch.setattr(shutil, "copyfile", copy_with_another)
    store.exchange(seen[0], contents[0])

    assert [(store.root / key).read_text() for key in keys] == ["rewritten 0", "rewritten 1"]


def test_a_file_of_the_longest_name_is_exchanged_and_keeps_its_time(store, tmp_path) -> None:
    key = f"inbox/sales/{'日' * 83}.csv"
    (tmp_path / "content").write_text("rewritten")
    (store.root / "inbox" / "sales").mkdir(parents=True)
    (store.root / key).write_text("delivered")
    os.utime(store.root / key, (1_700_000_000,) * 2)

    assert store.exchange(store.stat(key), tmp_path / "content") == store.stat(key)
    assert (store.root / key).read_text() == "rewritten"
    assert (store.root / key).stat().st_mtime == 1_700_000_000
