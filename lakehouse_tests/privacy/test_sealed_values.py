"""Values of a request: readable by nobody without the key, and by nobody at all once they are
destroyed.
"""

from pathlib import Path

import pytest

from lakehouse.errors import LakehouseError
from lakehouse.privacy.sealed_values import SealedValues, destroy, seal, unseal
from lakehouse.settings import Settings
from lakehouse.tables.person import Person

pytestmark = pytest.mark.unit

SECRET = "anna.example@example.org"
VALUES = SealedValues(
    (("customer_email", SECRET),),
    (Person("customer_id", frozenset({"7", " 007 "}), {"email": frozenset({SECRET})}),),
)


def content_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_no_file_has_a_value_in_clear_and_all_are_closed(settings: Settings) -> None:
    seal(settings, "R-1", VALUES)
    assert SECRET.encode() not in content_below(settings.home)
    below = settings.home / "privacy"
    assert {path.stat().st_mode & 0o077 for path in (below, *below.rglob("*"))} == {0}


def test_each_request_has_a_key_of_its_own(settings: Settings) -> None:
    seal(settings, "R-1", VALUES)
    seal(settings, "R-2", VALUES)
    folder = settings.home / "privacy" / "requests"
    assert (folder / "R-1.key").read_bytes() != (folder / "R-2.key").read_bytes()
    (folder / "R-1.key").write_bytes((folder / "R-2.key").read_bytes())
    with pytest.raises(LakehouseError, match=r"R-1\.sealed cannot be decrypted by R-1\.key"):
        unseal(settings, "R-1")


def test_what_is_destroyed_is_gone_with_its_key(settings: Settings) -> None:
    seal(settings, "R-1", VALUES)
    seal(settings, "R-10", VALUES)
    assert destroy(settings, "R-1")
    names = {path.name for path in (settings.home / "privacy" / "requests").iterdir()}
    assert names == {"R-10.key", "R-10.sealed"}
    assert not destroy(settings, "R-1")
    with pytest.raises(LakehouseError, match="The values of request R-1 do not exist"):
        unseal(settings, "R-1")


def test_what_is_destroyed_is_overwritten_first(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal(settings, "R-1", VALUES)
    folder = settings.home / "privacy" / "requests"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
    destroy(settings, "R-1")
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {name: len(content) for name, content in after.items()} == {
        name: len(content) for name, content in before.items()
    }
    assert not any(after[name] == before[name] for name in before)


def test_a_value_is_in_no_repr() -> None:
    assert SECRET not in repr(VALUES)
