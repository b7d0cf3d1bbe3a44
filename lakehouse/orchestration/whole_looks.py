"""Checks that failed last: what a write brings may keep a rule that rows of before still break, so
that such a check passes after a look at all rows alone.
"""

from collections.abc import Iterable
from typing import Any

import dagster as dg

from lakehouse.orchestration.asset_checks import checked_rules
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.dagster_internals import check_summaries
from lakehouse.orchestration.metadata_keys import CheckMetadata
from lakehouse.tables.table import IcebergTable


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
    return {key.name for key in keys if key in found and _failed(found[key])}


def _failed(summary: Any) -> bool:
    last = summary.last_completed_check_execution_record
    evaluation = last.evaluation if last else None
    if evaluation is None:
        return False
    is_of_main = CheckMetadata.from_metadata(evaluation.metadata).evaluated == "main"
    return is_of_main and not evaluation.passed
