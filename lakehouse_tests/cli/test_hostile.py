"""Invalid commands: one exit code, one line, and no effect; no JVM."""

import io
import os
from pathlib import Path

import pytest

import lakehouse.cli
from lakehouse.cli.program import UNREAD, run

pytestmark = pytest.mark.unit

DAYS = "silver.bnpl_transactions_clean"
WHY = ("--why", "it is wrong")
WRONG = [
    (["backfill", DAYS, "--from", ""], "has no partition ''; it has 2020-01-01 to"),
    (["backfill", DAYS, "--from", "2026-13-45"], "has no partition '2026-13-45'; it has"),
    (["backfill", DAYS, "--from", "2021-02-29"], "has no partition '2021-02-29'; it has"),
    (["backfill", DAYS, "--from", "2999-01-01"], "has no partition '2999-01-01'; it has"),
    (["backfill", DAYS, "--from", "2026-03-05", "--to", "2026-03-01"], "comes after --to"),
    (["backfill", "silver.fruits", "--from", "2026-03-01"], "expected no --from"),
    (["backfill", DAYS], "is computed by partitions, and no --from is given"),
    (["backfill", "bronze.raw_fruits"], "is computed from no other table"),
    (["retry", "silver.fruits_quarantine"], "is the quarantine of silver.fruits"),
    (["publish", "silver.fruits", "--run", " ", *WHY], "--run is empty"),
    (
        ["reject", "../../etc/passwd", "--feed", "fruits", *WHY],
        "'../../etc/passwd' is no name of a file in inbox/",
    ),
    (["ingest", ""], "There is no feed ''"),
    (["ingest", "fruits", "--path", "/there/is/nothing"], "There is no file at"),
    (["ingest", "--path", "/tmp"], "--path is of one feed"),
    (["mute", "silver.fruits"], "Expected --until with a moment, or --off"),
    (["history", "a\udcff.b"], "There is no table a\\udcff.b"),
    (["files", "."], "There is no table .;"),
    (["diff", "silver/fruits"], "did you mean silver.fruits?"),
    (["sql", " ; "], "There is no statement to run"),
    (["dev", "--host", ""], "--host is empty"),
]


@pytest.mark.parametrize(
    ("arguments", "said"), WRONG, ids=[" ".join(arguments) for arguments, _ in WRONG]
)
def test_what_is_wrong_is_one_line_and_2(lakehouse, arguments, said):
    ran = lakehouse(*arguments)
    assert (ran.code, ran.out, len(ran.err)) == (2, [], 1)
    assert ran.err[0].startswith("lakehouse: ")
    assert said in ran.err[0]


NEED_A_HOME = [["alerts"], ["status"], ["ingest"], ["sql", "SELECT 1"], ["dev"], ["demo"]]


@pytest.mark.parametrize("arguments", NEED_A_HOME, ids=" ".join)
def test_a_home_that_cannot_be_is_named(lakehouse, home: Path, arguments):
    home.write_text("a file")
    ran = lakehouse(*arguments)
    assert (ran.code, ran.out, len(ran.err)) == (2, [], 1)
    assert ran.err[0].startswith(
        f"lakehouse: LAKEHOUSE_HOME is '{home}' (File exists); expected a folder"
    )


def test_closed_streams_are_no_error(lakehouse, monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    monkeypatch.setattr("sys.stderr", None)
    assert run(["status"]) == 0
    assert run(["history", "silver.fruit"]) == 2


READING = [
    (["sql", "-"], "statements"),
    (["export", "customer_id=-"], "lines of values"),
    (["erase", "-", "--request", "R-1"], "lines of SUBJECT=VALUE"),
]


@pytest.mark.parametrize(("arguments", "expected"), READING, ids=str)
@pytest.mark.parametrize("is_closed", [True, False])
def test_a_standard_input_that_cannot_be_read_is_named(
    lakehouse, monkeypatch, arguments, expected, is_closed
):
    no_text = io.TextIOWrapper(io.BytesIO(b"customer_id=\xff"), encoding="utf-8")
    monkeypatch.setattr("sys.stdin", None if is_closed else no_text)
    ran = lakehouse(*arguments)
    problem = "closed; expected {} there" if is_closed else "not utf-8; expected {} in it"
    said = f"lakehouse: Standard input is {problem.format(expected)}."
    assert (ran.code, ran.err) == (2, [said])


def test_a_file_of_people_that_is_no_text_is_named(lakehouse, tmp_path):
    file = tmp_path / "people.txt"
    file.write_text("customer_id=1", encoding="utf-16")
    ran = lakehouse("erase", "--file", str(file), "--request", "R-1")
    assert (ran.code, ran.err) == (
        2,
        [f"lakehouse: {file} is not utf-8; expected lines of SUBJECT=VALUE in it."],
    )


def test_who_stops_reading_gets_no_traceback(lakehouse, monkeypatch, capsys):
    reader, writer = os.pipe()
    os.close(reader)
    unread = os.fdopen(writer, "w")
    monkeypatch.setattr("sys.stdout", unread)
    code = run(["status"])
    with pytest.raises(BrokenPipeError):
        unread.close()
    assert (code, capsys.readouterr().err) == (UNREAD, "")


def test_a_locale_without_its_characters_still_gets_them(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="ascii"))
    lakehouse.cli._print_in_utf8()
    print("苹果", flush=True)  # noqa: T201
    assert written.getvalue() == "苹果\n".encode()
