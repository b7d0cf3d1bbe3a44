"""Keys that come again in other files are looked at only where one would be chosen."""

from pathlib import Path

import pytest

from lakehouse.scaffolding import inspect_files as inspecting
from lakehouse.scaffolding.inspect_files import inspect_files
from lakehouse.scaffolding.repeated_keys import KeyRepeats

pytestmark = pytest.mark.unit


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The keys whose hashes are kept."""
    keys: list[tuple[str, ...]] = []

    def note(key, beside, names) -> KeyRepeats:
        keys.append(key)
        return KeyRepeats(key, beside, names)

    monkeypatch.setattr(inspecting, "KeyRepeats", note)
    return keys


def write(folder: Path, first_id: int) -> list[Path]:
    """Write two files; the second has the same numbers of lines, and ids from one on."""
    files = []
    for name, start in (("a", 0), ("b", first_id)):
        rows = [f"{start + at},{at},{at}.5\n" for at in range(20)]
        files.append(folder / f"{name}.csv")
        files[-1].write_text("order_id,line_no,price_no\n" + "".join(rows))
    return files


def test_where_all_files_have_a_key_no_other_is_looked_at(tmp_path: Path, looked_at) -> None:
    assert inspect_files(write(tmp_path, 20)).repeated_key is None
    assert looked_at == []


def test_of_keys_that_come_again_the_chosen_one_is_looked_at(tmp_path: Path, looked_at) -> None:
    found = inspect_files(write(tmp_path, 0))

    assert found.repeated_key is not None
    assert found.repeated_key.columns == ("order_id",)
    assert looked_at == [("order_id",)]
