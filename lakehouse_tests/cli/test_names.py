"""An unknown table or feed: one exit code, and the similar name."""

import pytest

pytestmark = pytest.mark.unit

WITH_ANY_TABLE = [["history"], ["history", "--schema"], ["files"], ["diff"]]
WITH_A_DECLARED_TABLE = [
    *(["plan"], ["apply"], ["check"], ["retry"], ["quarantine"], ["try"], ["preview"]),
    ["mute", "--until", "2h"],
    ["publish", "--run", "0a1b2c3d", "--why", "it is right"],
    ["backfill", "--from", "2026-03-02"],
    ["contract"],
]
WITH_A_TABLE = [*WITH_ANY_TABLE, *WITH_A_DECLARED_TABLE]


@pytest.mark.parametrize("arguments", WITH_A_TABLE, ids=" ".join)
@pytest.mark.parametrize("typed", ["silver.fruit", "lakehouse.silver.friuts", "fruits"])
def test_an_unknown_table_is_wrong_usage_and_the_near_name_is_said(lakehouse, arguments, typed):
    command, *options = arguments
    ran = lakehouse(command, typed, *options)
    assert (ran.code, ran.out, len(ran.err)) == (2, [], 1)
    assert "did you mean silver.fruits?" in ran.err[0]


@pytest.mark.parametrize("arguments", [*WITH_ANY_TABLE, ["check"], ["preview"]], ids=" ".join)
def test_a_declared_table_that_no_run_made_is_said_to_be_that(lakehouse, arguments):
    command, *options = arguments
    ran = lakehouse(command, "silver.fruits", *options)
    assert ran.code == 1
    assert ran.err == [
        "lakehouse: silver.fruits is declared, and not there yet. `lakehouse ingest` makes the"
        " tables of a feed."
    ]


def test_a_table_that_nobody_declared_is_near_too(lakehouse, table_there):
    assert "did you mean t.there?" in lakehouse("history", "t.their").err[0]


@pytest.mark.parametrize(
    "arguments",
    [
        ["ingest", "fruit"],
        ["ingest", "Fruits"],
        ["reject", "a.csv", "--feed", "fruit", "--why", "no"],
    ],
)
def test_an_unknown_feed_is_wrong_usage_and_the_near_name_is_said(lakehouse, arguments):
    ran = lakehouse(*arguments)
    assert (ran.code, ran.out, len(ran.err)) == (2, [], 1)
    assert "did you mean fruits?" in ran.err[0]


@pytest.mark.parametrize("typed", ["", ".", "..", "/", "a.csv/", "./a.csv", "sub/../a.csv"])
def test_what_is_no_name_of_a_file_is_wrong_usage(lakehouse, typed):
    ran = lakehouse("reject", typed, "--feed", "fruits", "--why", "sent by mistake")
    assert (ran.code, ran.out, len(ran.err)) == (2, [], 1)
    assert (
        f"{typed!r} is no name of a file in inbox/fruits/; expected one as `_source_file`"
        " has it" in ran.err[0]
    )
