"""Partitions of a table recomputed in full by hand, in one run, with what follows from them."""

import re
from datetime import date

import dagster as dg

from lakehouse.errors import UsageError
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.dagster_internals import asset_graph
from lakehouse.orchestration.instance import open_instance
from lakehouse.orchestration.run_result import RunResult
from lakehouse.orchestration.runs import Project, materialize
from lakehouse.orchestration.runs_for_stale_tables import Downstream
from lakehouse.settings import Settings


def backfill(
    project: Project, settings: Settings, table: str, first: str, last: str
) -> RunResult:
    """Compute a range of a table's partitions, and what is computed from them alone.

    :raises UsageError: when the table has no partitions, or not these.
    """
    here = project(lambda: settings)
    _check(here, table, first, last)
    tables = Downstream(asset_graph(here), table).with_alike([table])
    selection = dg.AssetSelection.assets(*map(asset_key, tables))
    with open_instance(settings) as instance:
        return materialize(
            here,
            instance,
            selection,
            partition=(first, last),
            tags={"lakehouse/backfill": table},
        )


def _check(definitions: dg.Definitions, table: str, first: str, last: str) -> None:
    graph = asset_graph(definitions)
    key = asset_key(table)
    node = graph.get(key) if graph.has(key) else None
    if node is None or node.partitions_def is None:
        partitioned = sorted(
            ".".join(key.path)
            for key in graph.get_all_asset_keys()
            if graph.get(key).partitions_def
        )
        raise UsageError(
            f"{table} has no partitions; those that have are {', '.join(partitioned)}."
        )
    keys = node.partitions_def.get_partition_keys()
    for asked in (first, last):
        if asked not in keys:
            why = ", and there is no such day" if _is_no_day(asked) else ""
            raise UsageError(
                f"{table} has no partition {asked!r}{why}; it has {keys[0]} to {keys[-1]}."
            )
    if keys.index(first) > keys.index(last):
        raise UsageError(
            f"--from {first} comes after --to {last}; expected the earlier one first."
        )


def _is_no_day(key: str) -> bool:
    """Whether a key is written as a day and is none, such as one that the first and the last
    partition lie around.
    """
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", key):
        return False
    try:
        date.fromisoformat(key)
    except ValueError:
        return True
    return False
