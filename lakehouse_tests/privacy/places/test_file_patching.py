"""Files that others write are overwritten where the values stand, and stay the same files."""

import pytest

from lakehouse.privacy.places import file_patching
from lakehouse.privacy.places.file_patching import patch_file
from lakehouse_tests.privacy.places.a_person import EMAIL, PASSPORT, finder, traces

pytestmark = pytest.mark.unit


def test_a_file_stays_the_same_one_and_as_long(tmp_path):
    file = tmp_path / "spark.log"
    file.write_text(f"WARN {EMAIL} failed\n", encoding="utf-8")
    before = file.stat()

    assert patch_file(finder(), file, is_dry=False) == (1, 0)

    after = file.stat()
    assert (after.st_ino, after.st_size) == (before.st_ino, before.st_size)
    assert file.read_text(encoding="utf-8") == "WARN [erased]*************** failed\n"


def test_who_has_it_open_goes_on_to_write_at_its_end(tmp_path):
    file = tmp_path / "spark.log"
    with file.open("ab", buffering=0) as log:
        log.write(f"{EMAIL}\n".encode())
        patch_file(finder(), file, is_dry=False)
        log.write(b"next\n")

    assert file.read_bytes().endswith(b"*\nnext\n")
    assert traces(tmp_path) == []


@pytest.mark.parametrize("shift", range(-60, 4, 3))
def test_a_value_at_the_edge_of_what_is_read_at_once_is_found_once(
    tmp_path, monkeypatch, shift
):
    monkeypatch.setattr(file_patching, "_CHUNK_BYTES", 64)
    file = tmp_path / "a.log"
    file.write_bytes(b"x" * (640 + shift) + f" {EMAIL} {PASSPORT} ".encode() + b"y" * 300)

    assert patch_file(finder(), file, is_dry=False) == (2, 0)
    assert traces(tmp_path) == []


def test_what_stands_before_a_number_is_seen_at_the_edge_too(tmp_path, monkeypatch):
    monkeypatch.setattr(file_patching, "_CHUNK_BYTES", 64)
    file = tmp_path / "a.log"
    file.write_bytes(b"x" * 639 + b"1" + PASSPORT.encode())

    assert patch_file(finder(), file, is_dry=False) == (0, 0)


def test_what_is_shared_is_counted_once(tmp_path, monkeypatch):
    monkeypatch.setattr(file_patching, "_CHUNK_BYTES", 64)
    file = tmp_path / "a.log"
    file.write_bytes(b"x" * 600 + EMAIL.encode() + b"y" * 600)

    assert patch_file(finder(EMAIL), file, is_dry=False) == (0, 1)


def test_lines_of_json_stay_json(tmp_path):
    import json

    file = tmp_path / "a.jsonl"
    lines = [{"customer_id": 7, "to": EMAIL}, {"customer_id": int(PASSPORT), "rows": [1, 7]}]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    patch_file(finder(), file, is_dry=False)

    first, second = map(json.loads, file.read_text().splitlines())
    assert first["customer_id"] == 0
    assert first["to"].startswith("[erased]")
    assert second == {"customer_id": 0, "rows": [1, 7]}


def test_a_dry_run_counts_and_changes_nothing(tmp_path):
    file = tmp_path / "a.log"
    file.write_text(EMAIL, encoding="utf-8")
    file.chmod(0o400)

    assert patch_file(finder(), file, is_dry=True) == (1, 0)
    assert file.read_text(encoding="utf-8") == EMAIL
