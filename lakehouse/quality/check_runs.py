"""Run the checks of tables without writing them."""

from collections.abc import Iterable

import dagster as dg

from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.instance import open_instance
from lakehouse.orchestration.run_result import RunResult
from lakehouse.orchestration.runs import MakeDefinitions, materialize
from lakehouse.settings import Settings


def check(
    project: MakeDefinitions,
    settings: Settings,
    tables: Iterable[str],
) -> RunResult:
    """Evaluate all checks of some tables on their published rows.

    :param tables: names of existing tables.
    :raises UsageError: if none of them has a check.
    """
    selection = dg.AssetSelection.checks_for_assets(*map(asset_key, tables))
    with open_instance(settings) as instance:
        return materialize(project(lambda: settings), instance, selection)
