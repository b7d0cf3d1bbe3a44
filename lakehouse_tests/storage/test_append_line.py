"""A line is appended complete or not at all."""

import resource
import signal

import pytest

from lakehouse.storage.atomic_files import append_line

pytestmark = pytest.mark.unit


def test_an_incomplete_last_line_is_removed_and_reported(tmp_path, caplog):
    file = tmp_path / "events.jsonl"
    file.write_bytes(b'{"a": 1}\n{"a": ')

    append_line(file, b'{"a": 2}')

    assert file.read_bytes() == b'{"a": 1}\n{"a": 2}\n'
    assert f"{file}: removed an incomplete last line, 6 bytes" in caplog.text


def test_a_line_that_is_there_is_not_added_again(tmp_path):
    file = tmp_path / "events.jsonl"
    for _ in range(2):
        append_line(file, b'{"id": "a"}', unless=b'"a"')

    assert file.read_bytes() == b'{"id": "a"}\n'


def test_a_file_that_cannot_grow_is_left_as_it_was(tmp_path):
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"1\n")
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, former[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            append_line(file, b"x" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
        signal.signal(signal.SIGXFSZ, handler)

    assert file.read_bytes() == b"1\n"
