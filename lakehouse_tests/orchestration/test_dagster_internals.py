"""What is not public in Dagster: looked at for the version that is installed, used where it is
said to be, and there.
"""

import ast
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import dagster as dg
import pytest

import lakehouse
from lakehouse.orchestration import dagster_internals
from lakehouse.orchestration.dagster_internals import (
    LOOKED_AT,
    NO_COMPUTE_LOGS,
    check_executions,
    check_summaries,
    free_slots,
    is_of_one_host,
    latest_check_executions,
)

pytestmark = pytest.mark.unit

_HOME = Path(lakehouse.__file__).parent
KEY = dg.AssetCheckKey(dg.AssetKey("fruit"), "ripe")


@dg.asset(check_specs=[dg.AssetCheckSpec("ripe", asset="fruit")])
def fruit() -> dg.MaterializeResult:
    return dg.MaterializeResult(
        check_results=[dg.AssetCheckResult(check_name="ripe", passed=True)]
    )


def test_the_version_that_is_installed_was_looked_at() -> None:
    assert version("dagster") == LOOKED_AT, (
        f"Dagster {version('dagster')} is installed, and {LOOKED_AT} was looked at: look whether"
        f" all that {dagster_internals.__name__} and event_log use is still there and does the"
        " same."
    )


def test_what_checks_did_is_read_from_the_storage(tmp_path: Path) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        for _ in range(2):
            assert dg.materialize([fruit], instance=instance).success
        (latest,) = latest_check_executions(instance, [KEY]).values()
        executions = check_executions(instance, KEY, limit=5)
        summary = check_summaries(instance, [KEY])[KEY].last_completed_check_execution_record
        assert executions[0].id == latest.id == summary.id
        assert [record.event.dagster_event.event_type_value for record in executions] == [
            "ASSET_CHECK_EVALUATION"
        ] * 2
        assert is_of_one_host(instance)
        free_slots(instance, latest.run_id)


def test_the_manager_that_keeps_no_logs_is_there() -> None:
    assert getattr(import_module(NO_COMPUTE_LOGS["module"]), NO_COMPUTE_LOGS["class"])


def private_uses(tree: ast.AST) -> list[str]:
    uses = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dagster._"):
            uses.append(node.module or "")
        if isinstance(node, ast.Attribute) and node.attr in (
            "event_log_storage",
            "step_context",
        ):
            uses.append(node.attr)
        if isinstance(node, ast.Constant) and str(node.value).startswith("dagster._"):
            uses.append(str(node.value))
    return uses


def test_no_other_module_uses_it() -> None:
    using = {
        file.relative_to(_HOME).as_posix()
        for file in _HOME.rglob("*.py")
        if private_uses(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert using == {"orchestration/dagster_internals.py", "orchestration/event_log.py"}
