"""What an asset reads and how, as metadata: people see it in Dagster, and what is owed is told
from it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

import dagster as dg

from lakehouse.iceberg.read.inputs import SINCE, Input
from lakehouse.orchestration.asset_keys import table_name

READS = "lakehouse/reads"
_TYPED: Mapping[str, Callable[[Any], Any]] = {
    "keys": tuple,
    "snapshot_id": int,
    "timestamp": datetime.fromisoformat,
}


def reads_metadata(inputs: Mapping[str, Input]) -> dict[str, Any]:
    """Return the metadata that says what is read; none where nothing is."""
    return {READS: {name: _plain(given) for name, given in inputs.items()}} if inputs else {}


def inputs_of(metadata: Mapping[str, Any]) -> dict[str, Input]:
    """Return what an asset reads, from the metadata of its definition."""
    found = metadata.get(READS, {})
    values = getattr(found, "value", found)
    return {name: _input(said) for name, said in values.items()}


def incremental_readers(
    assets: Iterable[dg.AssetsDefinition | dg.AssetSpec],
) -> dict[str, set[str]]:
    """Return, by table, those that read on in it from where they were."""
    readers: dict[str, set[str]] = {}
    specs = [
        spec
        for asset in assets
        if isinstance(asset, dg.AssetsDefinition)
        for spec in asset.specs
    ]
    for spec in specs:
        for read in inputs_of(spec.metadata).values():
            if read.mode in SINCE:
                readers.setdefault(read.table, set()).add(table_name(spec.key))
    return readers


def _plain(given: Input) -> dict[str, Any]:
    said = {
        name: value for name, value in asdict(given).items() if value not in (None, False, ())
    }
    # Snapshot ids exceed what JSON numbers hold.
    texts: dict[str, Any] = {
        name: str(said[name]) for name in ("snapshot_id", "timestamp") if name in said
    }
    lists = {"keys": list(given.keys)} if given.keys else {}
    return {**said, **texts, **lists}


def _input(said: Mapping[str, Any]) -> Input:
    typed = {name: read(said[name]) for name, read in _TYPED.items() if name in said}
    return Input(**{**said, **typed})
