"""What users do about a blocked table: retry, publish or reject a file."""

import json
from pathlib import Path
from types import ModuleType

import pytest

from lakehouse.iceberg.commit import branch
from lakehouse.iceberg.commit.publish_blocked import OVERRIDDEN_BY, OVERRIDDEN_FOR
from lakehouse.ingestion import delivery_decisions
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse_tests.cli.conftest import put_fruits
from lakehouse_tests.conftest import settings_at

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.fixture
def held(lakehouse, home: Path, filled_by):
    """A lakehouse where `silver.fruits` was refused for one of two files."""

    def fill() -> None:
        put_fruits(home, "apple.csv", "1,Apple,false", second=0)
        put_fruits(home, "banana.csv", "2,banana,false", second=1)
        assert lakehouse("ingest", "fruits").code == 1

    filled_by("held").bring_back(fill)
    return lakehouse


def fruits(held) -> list[str]:
    out = held("sql", "SELECT fruit FROM silver.fruits ORDER BY fruit", "--format", "csv").out
    return out[1:]


def find_blocking_run(home: Path) -> str:
    with open_instance(settings_at(home)) as instance:
        return instance.get_runs(limit=1)[0].run_id


@pytest.mark.long
def test_a_blocked_run_is_published_by_a_person_who_says_why(held, home: Path) -> None:
    run_id = find_blocking_run(home)
    command = f"publish silver.fruits --run {run_id[:8]} --by somebody --why"
    ran = held(*command.split(), "it is one")
    assert ran.out == [
        f"silver.fruits: published against its rules as of run {run_id[:8]}, 2 rows in all. "
        "The next ingest computes what follows."
    ]
    assert fruits(held) == ["Apple", "banana"]
    assert held("retry", "silver.fruits").out[0].startswith("silver.fruits: nothing to compute")
    query = "SELECT summary FROM silver.fruits.snapshots ORDER BY committed_at DESC LIMIT 1"
    (row,) = json.loads("".join(held("sql", query, "--format", "json").out))
    summary = row["summary"]
    assert (summary[OVERRIDDEN_BY], summary[OVERRIDDEN_FOR]) == ("somebody", "it is one")
    with open_instance(settings_at(home)) as instance:
        event = instance.get_latest_materialization_event(asset_key("silver.fruits"))
        assert event.asset_materialization.metadata["overridden_by"].value == "somebody"


@pytest.mark.parametrize(
    ("module", "step"),
    [
        (branch, "drop_branch"),
        (delivery_decisions, "open_instance"),
        (delivery_decisions, "finish_removals"),
    ],
    ids=["before its branch is dropped", "before Dagster is told", "before rows leave"],
)
def test_a_publish_that_was_killed_is_finished_by_the_same_command(
    held, home: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, step: str
) -> None:
    run_id = find_blocking_run(home)
    command = ("publish", "silver.fruits", "--run", run_id[:8], "--by", "somebody", "--why")
    with monkeypatch.context() as killed:
        killed.setattr(module, step, _be_interrupted)
        assert held(*command, "it is one").code != 0
    assert fruits(held) == ["Apple", "banana"]

    for _ in range(2):
        assert held(*command, "it is one").out == [
            f"silver.fruits: run {run_id[:8]} was published against its rules already, by"
            " somebody: it is one; what was left to do is done."
        ]
        assert _times_published_by_hand(home) == 1


def _be_interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def _times_published_by_hand(home: Path) -> int:
    with open_instance(settings_at(home)) as instance:
        told = instance.fetch_materializations(asset_key("silver.fruits"), limit=100).records
    return sum("overridden_by" in event.asset_materialization.metadata for event in told)


def test_a_run_that_was_not_blocked_is_not_published(held) -> None:
    ran = held(
        "publish", "silver.fruits", "--run", "nothing", "--why", "it was sent by mistake"
    )
    assert ran.code == 2
    assert "has no blocked candidate of run 'nothing'" in ran.err[0]


@pytest.mark.long
def test_a_file_is_taken_out_of_bronze_and_kept_with_the_rejected(held, home: Path) -> None:
    assert held("retry", "silver.fruits").code == 1
    command = "reject banana.csv --feed fruits --by somebody --why"
    ran = held(*command.split(), "sent by mistake")
    (kept,) = (
        path for path in (home / "rejected" / "fruits").iterdir() if path.name.endswith(".csv")
    )
    assert ran.out == [
        "bronze.raw_fruits: 1 row of banana.csv taken out. The file is kept as"
        f" rejected/fruits/{kept.name}. The next ingest computes what follows."
    ]
    reason = json.loads(kept.with_name(f"{kept.name}.reason.json").read_text())
    assert (reason["file"], reason["found"]) == (
        "banana.csv",
        '"sent by mistake", said by somebody',
    )
    assert [path.name[:5] for path in (home / "archive" / "fruits").rglob("*.csv")] == ["apple"]
    assert held("ingest", "fruits").code == 0
    assert fruits(held) == ["Apple"]


@pytest.fixture
def twice(lakehouse, home: Path, filled_by):
    """A lakehouse to which two contents came under one name: a good one, and then another."""

    def fill() -> None:
        contents = (
            ("1,Apple,false", "2,Pear,false"),
            ("9,Apple,true", "3,Plum,false", "x,Fig,false"),
        )
        for second, rows in enumerate(contents):
            put_fruits(home, "daily.csv", *rows, second=second)
            assert lakehouse("ingest", "fruits").code == 0

    filled_by("twice").bring_back(fill)
    return lakehouse


def fruits_whole(lakehouse) -> list[str]:
    return lakehouse(
        "sql", "SELECT id, fruit, berry FROM silver.fruits ORDER BY id", "--format", "csv"
    ).out[1:]


@pytest.mark.long
def test_the_deliveries_that_a_name_stands_for_are_listed(twice) -> None:
    ran = twice("reject", "daily.csv", "--feed", "fruits", "--why", "sent by mistake")
    assert (ran.code, ran.out) == (2, [])
    assert "2 deliveries of 'daily.csv' have a hash that starts with ''" in ran.err[0]
    assert [" with 2 rows" in ran.err[0], " with 3 rows" in ran.err[0]] == [True, True]
    assert fruits_whole(twice) == ["2,Pear,false", "3,Plum,false", "9,Apple,true"]


def test_a_file_that_nobody_delivered_is_named(held) -> None:
    ran = held("reject", "pear.csv", "--feed", "fruits", "--why", "it was sent by mistake")
    assert ran.code == 2
    assert "bronze.raw_fruits has no row of a file 'pear.csv'" in ran.err[0]


def test_the_feed_of_a_file_is_asked_for(lakehouse) -> None:
    assert (
        "Which feed? Expected --feed with one of bnpl, fruits."
        in lakehouse("reject", "a", "--why", "b").err[0]
    )
