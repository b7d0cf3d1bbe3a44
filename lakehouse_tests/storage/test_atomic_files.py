"""Files that appear whole or not at all."""

from pathlib import Path

import pytest

from lakehouse.storage.atomic_files import create_bytes

pytestmark = pytest.mark.unit


def test_a_file_is_created_whole_and_never_over_another(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert create_bytes(path, b"first", mode=0o600)
    assert not create_bytes(path, b"second")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"first", 0o600)
    assert list(tmp_path.iterdir()) == [path]
