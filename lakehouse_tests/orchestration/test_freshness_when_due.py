"""Freshness is evaluated where the answer may be another one, and not again and again."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.freshness import FreshnessPolicy
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.test_utils import freeze_time
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster._daemon.freshness import FreshnessDaemon

from lakehouse.orchestration import freshness_when_due
from lakehouse.orchestration.freshness_when_due import FreshnessWhenDue, changes_at
from lakehouse_tests.sqlite_statements import statements

pytestmark = pytest.mark.unit

KEY = dg.AssetKey("fruit")
CODE = """
from datetime import timedelta
import dagster as dg

def asset(name, hours):
    policy = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=hours))
    return dg.AssetSpec(name, freshness_policy=policy)

defs = dg.Definitions([asset("fruit", {hours}), asset("never_run", 1), dg.AssetSpec("others")])
"""
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def code(folder: Path, hours: int) -> InProcessCodeLocationOrigin:
    file = folder / f"of_{hours}_hours.py"
    file.write_text(CODE.format(hours=hours))
    return InProcessCodeLocationOrigin(LoadableTargetOrigin(python_file=str(file)))


@pytest.fixture
def origins(tmp_path: Path) -> list[InProcessCodeLocationOrigin]:
    """Where the code is loaded from."""
    return [code(tmp_path, hours=2)]


@pytest.fixture
def workspace(
    instance: dg.DagsterInstance, origins: list[InProcessCodeLocationOrigin]
) -> Iterator[WorkspaceProcessContext]:
    with WorkspaceProcessContext(instance, InProcessWorkspaceLoadTarget(origins)) as opened:
        yield opened


def look(daemon: FreshnessDaemon, workspace: WorkspaceProcessContext) -> list[str]:
    """Look once, and return what was asked of Dagster's storage."""
    with statements() as asked:
        list(daemon.run_iteration(workspace))
    return asked


def state(instance: dg.DagsterInstance) -> str:
    return instance.get_freshness_state_records([KEY])[KEY].freshness_state.value


def run(instance: dg.DagsterInstance) -> None:
    instance.report_runless_asset_event(dg.AssetMaterialization(KEY))


def settled(workspace: WorkspaceProcessContext) -> FreshnessWhenDue:
    """Return a daemon that has seen what it noted itself."""
    daemon = FreshnessWhenDue()
    for _ in range(2):
        look(daemon, workspace)
    return daemon


def test_where_nothing_happened_the_newest_event_alone_is_asked_for(
    instance: dg.DagsterInstance, workspace: WorkspaceProcessContext
) -> None:
    run(instance)
    daemon = settled(workspace)
    assert len(look(daemon, workspace)) == 1
    assert len(look(FreshnessDaemon(), workspace)) > 1


def test_a_run_makes_a_table_fresh(
    instance: dg.DagsterInstance, workspace: WorkspaceProcessContext
) -> None:
    daemon = settled(workspace)
    assert state(instance) == "UNKNOWN"
    run(instance)
    look(daemon, workspace)
    assert state(instance) == "PASS"


def test_time_alone_makes_a_table_too_old(
    instance: dg.DagsterInstance, workspace: WorkspaceProcessContext
) -> None:
    with freeze_time(NOON):
        run(instance)
    with freeze_time(NOON + timedelta(minutes=118)):
        daemon = settled(workspace)
    with freeze_time(NOON + timedelta(minutes=119)):
        assert len(look(daemon, workspace)) == 1
        assert state(instance) == "PASS"
    with freeze_time(NOON + timedelta(minutes=120)):
        look(daemon, workspace)
        assert state(instance) == "FAIL"


def test_an_event_that_is_committed_after_one_of_a_higher_number_is_seen_too(
    instance: dg.DagsterInstance,
    workspace: WorkspaceProcessContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(freshness_when_due, "newest_event", lambda _: 7)
    with freeze_time(NOON):
        daemon = settled(workspace)
        run(instance)
    with freeze_time(NOON + timedelta(minutes=9)):
        look(daemon, workspace)
        assert state(instance) == "UNKNOWN"
    with freeze_time(NOON + timedelta(minutes=10)):
        look(daemon, workspace)
        assert state(instance) == "PASS"


def test_other_code_is_evaluated(
    instance: dg.DagsterInstance,
    workspace: WorkspaceProcessContext,
    origins: list[InProcessCodeLocationOrigin],
    tmp_path: Path,
) -> None:
    with freeze_time(NOON):
        run(instance)
    with freeze_time(NOON + timedelta(minutes=90)):
        daemon = settled(workspace)
        assert state(instance) == "PASS"
        origins[:] = [code(tmp_path, hours=1)]
        workspace.refresh_workspace()
        look(daemon, workspace)
    assert state(instance) == "FAIL"


def test_after_an_evaluation_that_failed_the_next_look_evaluates(
    instance: dg.DagsterInstance,
    workspace: WorkspaceProcessContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    daemon = settled(workspace)
    run(instance)
    with monkeypatch.context() as patch:
        patch.setattr(instance, "get_freshness_state_records", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            look(daemon, workspace)
    look(daemon, workspace)
    assert state(instance) == "PASS"


WINDOWS = dg.FreshnessPolicy.time_window(
    warn_window=timedelta(hours=1), fail_window=timedelta(hours=3)
)
EVERY_MORNING = dg.FreshnessPolicy.cron("0 9 * * *", timedelta(hours=1), "Europe/Vienna")


@pytest.mark.parametrize(
    ("policy", "hours_since_run", "expected"),
    [
        (WINDOWS, 0, NOON + timedelta(hours=1)),
        (WINDOWS, 1, NOON + timedelta(hours=3)),
        (WINDOWS, 2, NOON + timedelta(hours=3)),
        (WINDOWS, 3, None),
        (EVERY_MORNING, 0, datetime(2026, 3, 2, 8, tzinfo=UTC)),
        (EVERY_MORNING, 19, datetime(2026, 3, 2, 8, tzinfo=UTC)),
    ],
)
def test_when_time_changes_the_answer_next(
    policy: dg.FreshnessPolicy, hours_since_run: int, expected: datetime | None
) -> None:
    now = NOON + timedelta(hours=hours_since_run)
    moment = changes_at(policy, NOON.timestamp(), now.timestamp())
    assert moment == (expected.timestamp() if expected else math.inf)


def test_by_an_unknown_policy_the_answer_may_change_at_any_time() -> None:
    class Other(FreshnessPolicy):
        """A policy that Dagster may have one day."""

    assert changes_at(Other(), NOON.timestamp(), NOON.timestamp()) == NOON.timestamp()
