"""Checks that failed last: new rows can pass a rule that existing rows still break, so such a
check must be evaluated on all rows.
"""

from collections.abc import Iterable
from typing import Any

import dagster as dg

from lakehouse.orchestration.asset_checks import checked_rules
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.dagster_internals import check_executions, check_summaries
from lakehouse.orchestration.metadata_keys import CheckMetadata
from lakehouse.tables.table import IcebergTable

_MAX_EXECUTIONS = 200
"""Maximum number of executions of a check to search for the last one on published rows; a
blocked table is not recomputed until its inputs change.
"""


def need_full_check(
    instance: dg.DagsterInstance, table: IcebergTable, passed: Iterable[str]
) -> set[str]:
    """Return the checks that pass now but failed in their last evaluation of published rows.

    Excludes quarantining rules, since their rows are not in the table, and checks of a single
    write, such as the quarantine share.

    :param passed: names of the checks that pass for the new rows.
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
        # A blocked write did not evaluate published rows.
        evaluation = _last_of_main(instance, key)
    return evaluation is not None and not evaluation.passed


def _last_of_main(
    instance: dg.DagsterInstance, key: dg.AssetCheckKey
) -> dg.AssetCheckEvaluation | None:
    for record in check_executions(instance, key, _MAX_EXECUTIONS):
        evaluation = record.evaluation
        # A planned execution has no result yet.
        if isinstance(evaluation, dg.AssetCheckEvaluation) and _is_of_main(evaluation):
            return evaluation
    return None


def _is_of_main(evaluation: dg.AssetCheckEvaluation) -> bool:
    return CheckMetadata.from_metadata(evaluation.metadata).evaluated == "main"
