"""Files that appear whole or not at all."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from lakehouse.storage.atomic_files import create_bytes

pytestmark = pytest.mark.unit


def test_a_file_is_created_whole_and_never_over_another(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert create_bytes(path, b"first", mode=0o600)
    assert not create_bytes(path, b"second")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"first", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_created_without_hard_links_or_an_error_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "hardlink_to", Mock(side_effect=PermissionError))
    assert create_bytes(tmp_path / "file", b"first")
    assert not create_bytes(tmp_path / "file", b"second")
    assert (tmp_path / "file").read_bytes() == b"first"
    with pytest.raises(FileNotFoundError):
        create_bytes(tmp_path / "missing" / "file", b"first")
