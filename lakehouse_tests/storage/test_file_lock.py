"""Waits for a file lock, which only one module takes."""

import subprocess
import sys
from pathlib import Path

import pytest

import lakehouse
from lakehouse.errors import TableBusy
from lakehouse.storage.file_lock import file_lock

pytestmark = pytest.mark.unit

_HOME = Path(lakehouse.__file__).parent
_HOLD = """
import sys
from filelock import FileLock
lock = FileLock(sys.argv[1])
lock.acquire()
print(flush=True)
sys.stdin.read()
"""


def test_who_waits_too_long_is_told_so(tmp_path: Path) -> None:
    file = tmp_path / "locks" / "a.lock"
    file.parent.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdin and other.stdout
        other.stdout.readline()
        with (
            pytest.raises(TableBusy, match="somebody"),
            file_lock(file, 0, TableBusy("somebody")),
        ):
            pass
        other.stdin.close()
    with file_lock(file, 0, TableBusy("somebody")):
        pass


def test_one_module_takes_locks() -> None:
    taking = [
        file.relative_to(_HOME).as_posix()
        for file in _HOME.rglob("*.py")
        if "filelock" in file.read_text(encoding="utf-8")
    ]
    assert taking == ["storage/file_lock.py"]
