"""Where files go once bronze has them, and what a second or a killed archiving does."""

import hashlib
from datetime import UTC, datetime

import pytest

from lakehouse.errors import LakehouseError
from lakehouse.ingestion.archive import archive_files
from lakehouse.ingestion.archive_names import archive_key, hashed_name, rejected_key
from lakehouse.ingestion.collect import collect_files
from lakehouse.ingestion.feed_lock import lock_feed
from lakehouse.tables.feed import Feed
from lakehouse_tests.ingestion.conftest import FRUITS, files

ROW = "id,fruit,berry\n1,Apple,false\n"
OTHER = "id,fruit,berry\n2,Kiwi,true\n"
SHA = hashlib.sha256(ROW.encode()).hexdigest()


def ingest(inbox, between=lambda: None):
    with lock_feed(inbox.feed, inbox.store.root) as held:
        delivery = collect_files(inbox.store, held)
        between()
        return archive_files(delivery, inbox.store)


def archived(inbox) -> list[str]:
    return [name.partition("/")[2] for name in files(inbox.store, FRUITS.archive)]


def test_a_file_is_archived_under_its_day_with_its_hash_in_the_name(inbox) -> None:
    inbox.put("fruit.csv", ROW)

    done = ingest(inbox)

    day = datetime.now(UTC).date().isoformat()
    assert list(done) == [f"archive/fruits/{day}/fruit.{SHA[:12]}.csv"]
    assert (inbox.store.root / done[0]).read_text() == ROW
    assert inbox.names() == []


def test_the_day_is_the_feed_s_own() -> None:
    feed = Feed("fruits", ["id"], "bronze.raw_fruits", time_zone="Asia/Kuala_Lumpur")

    key = archive_key(feed, "fruit.csv", SHA, datetime(2026, 1, 31, 23, 30, tzinfo=UTC))

    assert key == f"archive/fruits/2026-02-01/fruit.{SHA[:12]}.csv"


def test_a_key_too_long_has_a_hash_for_its_folders_wherever_the_file_goes() -> None:
    folders = "/".join(["ä" * 100] * 4)
    name = f"{folders}/{'b' * 120}.csv"

    archived, rejected = (
        archive_key(FRUITS, name, SHA, datetime(2026, 1, 31, tzinfo=UTC)),
        rejected_key(FRUITS, name, SHA, 64),
    )

    hashed = hashlib.sha256(folders.encode()).hexdigest()
    assert archived == f"archive/fruits/2026-01-31/long/{hashed}/{'b' * 120}.{SHA[:12]}.csv"
    assert rejected == f"rejected/fruits/long/{hashed}/{'b' * 120}.{SHA}.csv"


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("fruit.csv", "fruit.{}.csv"),
        ("fruit.csv.gz", "fruit.{}.csv.gz"),
        ("FRUIT.CSV", "FRUIT.{}.CSV"),
        ("a.b.csv", "a.b.{}.csv"),
        ("2026/01/fruit.csv", "2026/01/fruit.{}.csv"),
        ("readme", "readme.{}"),
        ("notes.txt", "notes.{}.txt"),
    ],
)
def test_the_hash_goes_before_the_ending(name: str, kept: str) -> None:
    assert hashed_name(FRUITS, name, SHA) == kept.format(SHA[:12])


def test_a_name_as_long_as_a_file_system_takes_is_cut(inbox) -> None:
    inbox.put("ä" * 125 + ".csv", ROW)
    inbox.put("b" * 251 + ".csv", "nonsense")

    done = ingest(inbox)

    assert len(done) == 1
    assert inbox.names() == []
    assert len(files(inbox.store, FRUITS.rejected)) == 2


def test_the_same_content_put_back_is_archived_once(inbox) -> None:
    for _ in range(2):
        inbox.put("fruit.csv", ROW)
        ingest(inbox)

    assert archived(inbox) == [f"fruit.{SHA[:12]}.csv"]
    assert inbox.names() == []


def test_contents_whose_hashes_begin_alike_do_not_collide(inbox) -> None:
    day = datetime.now(UTC).date().isoformat()
    taken = inbox.store.root / "archive" / "fruits" / day / f"fruit.{SHA[:12]}.csv"
    taken.parent.mkdir(parents=True)
    taken.write_text(OTHER)
    inbox.put("fruit.csv", ROW)

    ingest(inbox)

    assert sorted(archived(inbox), key=len) == [f"fruit.{SHA[:12]}.csv", f"fruit.{SHA}.csv"]
    assert taken.read_text() == OTHER


def test_an_archive_that_somebody_changed_is_not_written_over(inbox) -> None:
    for digits in (12, 64):
        day = datetime.now(UTC).date().isoformat()
        inbox.store.write_text(f"archive/fruits/{day}/fruit.{SHA[:digits]}.csv", OTHER)
    inbox.put("fruit.csv", ROW, second=1)
    inbox.put("good.csv", OTHER, second=2)

    with pytest.raises(LakehouseError, match="does not have the content hash in its name"):
        ingest(inbox)

    assert inbox.names() == ["fruit.csv"]
    assert "good." in " ".join(archived(inbox))


def test_a_file_overwritten_after_it_was_read_stays_for_the_next_time(inbox) -> None:
    inbox.put("fruit.csv", ROW, second=0)

    done = ingest(inbox, between=lambda: inbox.put("fruit.csv", OTHER, second=0))

    assert (done, inbox.names()) == ((), ["fruit.csv"])
    assert inbox.look().values("fruit") == [("Kiwi",)]


def test_a_file_replaced_by_one_of_the_same_size_and_time_stays_too(inbox) -> None:
    path = inbox.put("fruit.csv", ROW, second=0)
    twin = inbox.put(".twin", ROW.replace("Apple", "Mango"), second=0)

    done = ingest(inbox, between=lambda: twin.replace(path))

    assert done == ()
    assert inbox.look().values("fruit") == [("Mango",)]


def test_a_file_taken_away_after_it_was_read_is_no_error(inbox) -> None:
    path = inbox.put("fruit.csv", ROW)

    done = ingest(inbox, between=path.unlink)

    assert (done, inbox.names()) == ((), [])


def test_what_another_host_moved_a_moment_sooner_is_archived_once(inbox, monkeypatch) -> None:
    inbox.put("fruit.csv", ROW)
    move = type(inbox.store).move

    def move_after_another(store, seen, key):
        store.put(store.root / seen.key, key)
        return move(store, seen, key)

    monkeypatch.setattr(type(inbox.store), "move", move_after_another)
    done = ingest(inbox)

    assert len(done) == 1
    assert archived(inbox) == [f"fruit.{SHA[:12]}.csv"]
    assert inbox.names() == []


def test_what_another_host_removed_a_moment_sooner_is_told_as_archived(
    inbox, monkeypatch
) -> None:
    inbox.put("fruit.csv", ROW)
    first = ingest(inbox)
    inbox.put("fruit.csv", ROW)
    remove = type(inbox.store).remove

    def remove_after_another(store, seen):
        remove(store, seen)
        return remove(store, seen)

    monkeypatch.setattr(type(inbox.store), "remove", remove_after_another)

    assert ingest(inbox) == first


def test_archiving_that_was_killed_halfway_is_ended_by_the_next_ingest(
    inbox, monkeypatch
) -> None:
    for number in range(4):
        inbox.put(f"{number}.csv", ROW + f"{number},x,true\n", second=number)
    move, moved = type(inbox.store).move, []

    def killed(store, seen, key):
        if len(moved) == 2:
            raise KeyboardInterrupt
        moved.append(key)
        return move(store, seen, key)

    with monkeypatch.context() as patch:
        patch.setattr(type(inbox.store), "move", killed)
        with pytest.raises(KeyboardInterrupt):
            ingest(inbox)
    assert inbox.names() == ["2.csv", "3.csv"]

    ingest(inbox)

    assert inbox.names() == []
    assert [name[0] for name in archived(inbox)] == ["0", "1", "2", "3"]
