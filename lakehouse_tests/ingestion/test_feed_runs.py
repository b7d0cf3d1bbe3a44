"""One run after the other, as long as one succeeds; what one run left is taken by the next."""

from pathlib import Path

import dagster as dg

from lakehouse.ingestion.feed_runs import _run_stages, ingest
from lakehouse.orchestration.partitions.pending_run import PendingRun
from lakehouse.orchestration.runs.run_result import RunResult
from lakehouse.settings import Settings
from lakehouse_tests.ingestion.conftest import FRUITS

BRONZE, SILVER, GOLD = (PendingRun((name,)) for name in ("bronze.a", "silver.a", "gold.a"))


def test_stages_are_done_in_order_up_to_the_first_failure() -> None:
    done: list[PendingRun] = []

    def run(stale: PendingRun) -> RunResult:
        done.append(stale)
        return RunResult("id", success=stale is not SILVER)

    assert [found.success for found in _run_stages([[BRONZE], [], [SILVER, GOLD]], run)] == [
        True,
        False,
    ]
    assert done == [BRONZE, SILVER]


def test_a_run_that_left_files_is_done_again() -> None:
    left, done = [2, 1, 0, 0], []

    def run(stale: PendingRun) -> RunResult:
        done.append(stale)
        return RunResult("id", success=True, message=str(left[len(done) - 1]))

    list(_run_stages([[BRONZE, SILVER]], run, lambda found: found.message != "0"))
    assert done == [BRONZE, BRONZE, BRONZE, SILVER]


def test_an_ingest_names_what_it_passes_over_in_the_inbox_and_in_a_folder_that_is_named(
    settings: Settings, tmp_path: Path
) -> None:
    landing = dg.asset(key=["bronze", "raw_fruits"])(lambda: None)
    file = tmp_path / "a.csv"
    file.write_text("id,fruit,berry\n1,Apple,false\n")
    for folder in (settings.home / "inbox" / "fruits", tmp_path / "given"):
        folder.mkdir(parents=True)
        (folder / "link.csv").symlink_to(file)
    (tmp_path / "given" / "b.csv").write_text(file.read_text())

    def said(path: str | None = None) -> tuple[str, ...]:
        return ingest(
            lambda _: dg.Definitions([landing]), {}, settings, FRUITS, path=path
        ).passed_over

    assert [line.partition(" is ")[0] for line in said()] == ["inbox/fruits/link.csv"]
    assert said(str(tmp_path / "given")) == (
        (
            f"{tmp_path}/given/link.csv is a link, and is passed over. Give the path of the"
            " file itself to ingest it."
        ),
    )


def test_an_ingest_names_files_of_its_own_whose_names_call_them_hidden(
    settings: Settings,
) -> None:
    landing = dg.asset(key=["bronze", "raw_fruits"])(lambda: None)
    folder = settings.home / "inbox" / "fruits"
    folder.mkdir(parents=True)
    names = (".day.csv", "..csv", "~a.csv.gz", "b.csv.part", ".DS_Store", "_SUCCESS", "n.tmp")
    for name in names:
        (folder / name).write_text("id,fruit,berry\n1,Apple,false\n")

    said = ingest(lambda _: dg.Definitions([landing]), {}, settings, FRUITS).passed_over
    assert sorted(line.partition(" is ")[0] for line in said) == [
        "'inbox/fruits/~a.csv.gz'",
        "inbox/fruits/..csv",
        "inbox/fruits/.day.csv",
        "inbox/fruits/b.csv.part",
    ]
    assert all(
        "is hidden or unfinished by its name, and is passed over. Rename it" in line
        for line in said
    )
