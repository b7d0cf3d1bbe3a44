"""One run after the other, as long as one succeeds; what one run left is taken by the next."""

from lakehouse.ingestion.catch_up import _do
from lakehouse.resources.owed_runs import OwedRun
from lakehouse.resources.run_result import RunResult

BRONZE, SILVER, GOLD = (OwedRun((name,)) for name in ("bronze.a", "silver.a", "gold.a"))


def test_stages_are_done_in_order_up_to_the_first_failure() -> None:
    done: list[OwedRun] = []

    def run(owed: OwedRun) -> RunResult:
        done.append(owed)
        return RunResult("id", success=owed is not SILVER)

    assert [found.success for found in _do([[BRONZE], [], [SILVER, GOLD]], run)] == [True, False]
    assert done == [BRONZE, SILVER]


def test_a_run_that_left_files_is_done_again() -> None:
    left, done = [2, 1, 0, 0], []

    def run(owed: OwedRun) -> RunResult:
        done.append(owed)
        return RunResult("id", success=True, message=str(left[len(done) - 1]))

    list(_do([[BRONZE, SILVER]], run, lambda found: found.message != "0"))
    assert done == [BRONZE, BRONZE, BRONZE, SILVER]


def test_a_stage_is_decided_once_those_before_it_are_done() -> None:
    done: list[OwedRun] = []

    def stages():
        yield [BRONZE]
        assert done == [BRONZE]
        yield [SILVER]

    def run(owed: OwedRun) -> RunResult:
        done.append(owed)
        return RunResult("id", success=True)

    assert len(list(_do(stages(), run))) == 2
