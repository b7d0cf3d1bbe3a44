"""The checks of tables alone, in one run that writes none of them."""

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
    """Evaluate all checks of some tables on what readers see.

    :param tables: names of tables that are there.
    :raises UsageError: when none of them has a check.
    """
    selection = dg.AssetSelection.checks_for_assets(*map(asset_key, tables))
    with open_instance(settings) as instance:
        return materialize(project(lambda: settings), instance, selection)
