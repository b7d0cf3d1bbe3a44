"""Who has a file open to write it, on disks of this machine and of others."""

import sys
from pathlib import Path

import psutil
import pytest

from lakehouse.storage.unfinished_files import is_open_for_writing

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="Linux alone tells who has a file open"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.csv"
    path.write_text("n\n1\n")
    return path


def test_a_writer_is_seen_until_it_closes_the_file(path: Path) -> None:
    assert is_open_for_writing(path) is False
    with path.open("a"), path.open():
        assert is_open_for_writing(path)
    with path.open():
        assert is_open_for_writing(path) is False


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_lease_that_a_network_disk_denies_says_nothing_of_writers(path, kind, monkeypatch):
    of_this_machine = psutil.disk_partitions(all=True)
    shared = of_this_machine[0]._replace(mountpoint=str(path.parent), fstype=kind)
    monkeypatch.setattr(psutil, "disk_partitions", lambda **_: [*of_this_machine, shared])

    with path.open("a"):
        assert is_open_for_writing(path) is None


def test_a_file_that_is_gone_or_a_link_is_not_open(path: Path) -> None:
    link = path.with_name("b.csv")
    link.symlink_to(path)
    with path.open("a"):
        assert not is_open_for_writing(link)
    path.unlink()
    assert not is_open_for_writing(path)
