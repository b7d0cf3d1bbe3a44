"""Files made to exhaust memory are rejected within the documented limit."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakehouse.ingestion.readers.csv_first_row import MORE_COLUMNS, first_row, header_names
from lakehouse_tests.ingestion.conftest import FRUITS

MB = 1 << 20
LIMIT_BYTES = 3000 * MB
"""Of the address space, two thirds of which nobody fills: Arrow's allocator and the threads'
stacks reserve it.
"""
HELD_BYTES = 10**9
HEADER = b"id,fruit,berry\n"
LONG_NAME = "n" * 230


def rejected() -> dict[str, tuple[bytes, str]]:
    return {
        "commas.csv": (b"," * (5 * MB), "too many columns"),
        "million.csv": (HEADER + b"," * MB + b"\n", "a ragged row"),
        "names.csv": (b"id,fruit,berry" + b",x" * MB + b"\n", "too many columns"),
        "line.csv": (b"x" * (40 * MB), "no header"),
        "nul.csv": (b"\0" * (20 * MB), "no header"),
        "nul_below.csv": (HEADER + b"\0" * (40 * MB), "a row too long"),
        "quotes.csv": (b'"' * (20 * MB), "no header"),
        "quotes_below.csv": (HEADER + b'"' * (40 * MB), "a row too long"),
        "field.csv": (HEADER + b'1,"' + b"x" * (40 * MB) + b'",true\n', "a row too long"),
        "spaces.csv": (b" " * (20 * MB), "an empty file"),
        "bomb.csv.gz": (gzip.compress(b"\0" * (200 * MB), 1), "no header"),
        "bomb_below.csv.gz": (gzip.compress(HEADER + b"x" * (200 * MB), 1), "a row too long"),
        "bomb_commas.csv.gz": (gzip.compress(b"," * (100 * MB), 1), "too many columns"),
    }


def accepted() -> dict[str, tuple[bytes, int]]:
    return {
        f"{LONG_NAME}.csv": (HEADER + b",,\n" * (4 * MB), 4 * MB),
        "lines.csv": (HEADER + b"\n" * (40 * MB) + b"1,Apple,false\n", 1),
        "long_rows.csv": (HEADER + (b"1," + b"x" * (6 * MB) + b",true\n") * 4, 4),
        "plain.csv.gz": (gzip.compress(HEADER + b"1,Apple,false\n" * (4 * MB), 1), 4 * MB),
    }


@pytest.mark.long
def test_what_is_made_to_exhaust_memory_is_judged_within_the_bound(home: Path) -> None:
    inbox = home / FRUITS.inbox
    inbox.mkdir(parents=True)
    reasons, rows = {}, {}
    for name, (content, reason) in rejected().items():
        (inbox / name).write_bytes(content)
        reasons[name] = reason
    for name, (content, number) in accepted().items():
        (inbox / name).write_bytes(content)
        rows[name] = number
    for number in range(4):
        (inbox / f"commas{number}.csv").write_bytes(b"," * (5 * MB))

    said = _judged_in_a_process(home)

    again = {f"commas{number}.csv": "too many columns" for number in range(4)}
    assert said["rejected"] == reasons | again
    assert said["rows"] == rows
    assert said["held_bytes"] < HELD_BYTES


def _judged_in_a_process(home: Path) -> dict:
    # As many threads as on a small machine: each reserves address space of its own.
    env = {**os.environ, "OMP_NUM_THREADS": "2", "MALLOC_ARENA_MAX": "4"}
    command = [
        sys.executable,
        "-m",
        "lakehouse_tests.ingestion.judging",
        str(home),
        str(LIMIT_BYTES),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env=env, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_as_many_columns_as_allowed_are_read(inbox_of) -> None:
    from dataclasses import replace

    inbox = inbox_of(replace(FRUITS, on_new_column="ignore"))
    more = [f"c{number}" for number in range(MORE_COLUMNS)]
    inbox.put(
        "wide.csv",
        ",".join(["id", "fruit", "berry", *more])
        + "\n1,Apple,false"
        + ",x" * MORE_COLUMNS
        + "\n",
    )

    assert inbox.look().values("id", "fruit", "berry") == [("1", "Apple", "false")]


def test_one_column_more_is_rejected_with_the_limit(inbox) -> None:
    inbox.put(
        "wide.csv", ",".join(["id", "fruit", "berry", *["x"] * (MORE_COLUMNS + 1)]) + "\n"
    )

    said = (
        "too many columns: found a first row of more than 1,003 fields; expected no more than"
        " 1,000 more than the"
    )
    assert said in inbox.look().reason


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (b"a,b\nc", b"a,b"),
        (b"a,b\r\nc", b"a,b"),
        (b"a,b", b"a,b"),
        (b"a,", b"a,"),
        (b'"a\nb",c\nd', b'"a\nb",c'),
        (b'"a""\n",c\nd', b'"a""\n",c'),
        (b'"a"b"\n', b'"a"b"'),
        (b'a"\nb"', b'a"'),
        (b'""\n', b'""'),
        (b'"a,b\n', None),
        (b'a,"""\n', None),
    ],
)
def test_the_first_row_ends_where_arrow_ends_it(text: bytes, row: bytes | None) -> None:
    assert first_row(text, 3) == row
    if row is not None:
        assert len(header_names(FRUITS, row + b"\n")) == len(header_names(FRUITS, text))
