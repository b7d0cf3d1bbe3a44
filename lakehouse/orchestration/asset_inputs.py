"""Inputs of an asset as Dagster metadata; staleness is computed from them."""

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
    """Return the metadata for the inputs of an asset; empty without inputs."""
    if not inputs:
        return {}
    return {READS: {name: _plain(declared) for name, declared in inputs.items()}}


def inputs_of(metadata: Mapping[str, Any]) -> dict[str, Input]:
    """Return the inputs of an asset from its metadata."""
    stored = metadata.get(READS, {})
    values = getattr(stored, "value", stored)
    return {name: _input(fields) for name, fields in values.items()}


def incremental_readers(
    assets: Iterable[dg.AssetsDefinition | dg.AssetSpec],
) -> dict[str, set[str]]:
    """Return the incremental readers of each table."""
    readers: dict[str, set[str]] = {}
    for asset in assets:
        for spec in asset.specs if isinstance(asset, dg.AssetsDefinition) else ():
            for read in inputs_of(spec.metadata).values():
                if read.mode in SINCE:
                    readers.setdefault(read.table, set()).add(table_name(spec.key))
    return readers


def _plain(declared: Input) -> dict[str, Any]:
    fields = {
        name: value
        for name, value in asdict(declared).items()
        if value not in (None, False, ())
    }
    for name in ("snapshot_id", "timestamp"):
        if name in fields:
            # Snapshot ids exceed the integer range of JSON.
            fields[name] = str(fields[name])
    if declared.keys:
        fields["keys"] = list(declared.keys)
    return fields


def _input(fields: Mapping[str, Any]) -> Input:
    typed = {name: read(fields[name]) for name, read in _TYPED.items() if name in fields}
    return Input(**{**fields, **typed})
