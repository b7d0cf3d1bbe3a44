"""Checks that failed last: what a write brings may keep a rule that rows of before still break, so
that such a check passes after a look at all rows alone.
"""

from collections.abc import Iterable
from typing import Any

import dagster as dg

from lakehouse.orchestration.asset_checks import checked_rules
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.dagster_internals import check_executions, check_summaries
from lakehouse.orchestration.metadata_keys import CheckMetadata
from lakehouse.tables.table import IcebergTable

_LOOKED_BACK = 200
"""Executions of a check among which the last on what readers see is looked for; a refused table is
not computed again until what it reads has changed.
"""


def need_whole_look(
    instance: dg.DagsterInstance, table: IcebergTable, passed: Iterable[str]
) -> set[str]:
    """Return those checks of a table that pass now, and failed when they were evaluated last on
    what readers see.

    Left out are rules that quarantine, since what breaks one of them is not in the table, and
    those of a write alone, such as how much of it was refused: the next write tells anew.

    :param passed: names of the checks that pass for what a write brought.
    """
    quarantining = {rule.name for rule in table.quarantining_rules}
    of_rows = {rule.name for rule in table.rules}
    of_writes = {rule.name for rule in checked_rules(table)} - of_rows
    names = set(passed) - quarantining - of_writes
    keys = [dg.AssetCheckKey(asset_key(table.name), name) for name in names]
    if not keys:
        return set()
    found = check_summaries(instance, keys)
    return {key.name for key in keys if key in found and _failed(instance, key, found[key])}


def _failed(instance: dg.DagsterInstance, key: dg.AssetCheckKey, summary: Any) -> bool:
    last = summary.last_completed_check_execution_record
    evaluation = last.evaluation if last else None
    if evaluation is not None and not _is_of_main(evaluation):
        # A write that was refused tells nothing of what readers see.
        evaluation = _last_of_main(instance, key)
    return evaluation is not None and not evaluation.passed


def _last_of_main(
    instance: dg.DagsterInstance, key: dg.AssetCheckKey
) -> dg.AssetCheckEvaluation | None:
    for record in check_executions(instance, key, _LOOKED_BACK):
        evaluation = record.evaluation
        # One that is planned, as by the run that asks, has no result.
        if isinstance(evaluation, dg.AssetCheckEvaluation) and _is_of_main(evaluation):
            return evaluation
    return None


def _is_of_main(evaluation: dg.AssetCheckEvaluation) -> bool:
    return CheckMetadata.from_metadata(evaluation.metadata).evaluated == "main"
