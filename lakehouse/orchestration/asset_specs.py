"""Asset specs from table declarations, with their inputs as metadata."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import dagster as dg

from lakehouse.iceberg.read.inputs import SINCE, Input
from lakehouse.orchestration.asset_keys import asset_key, table_name
from lakehouse.orchestration.written_metadata import declared_metadata
from lakehouse.storage.json_files import type_adapter
from lakehouse.tables.table import IcebergTable

READS = "lakehouse/reads"


def reads_metadata(inputs: Mapping[str, Input]) -> dict[str, Any]:
    """Return the metadata for the inputs of an asset; empty without inputs."""
    if not inputs:
        return {}
    return {READS: {name: _plain(declared) for name, declared in inputs.items()}}


def inputs_of(metadata: Mapping[str, Any]) -> dict[str, Input]:
    """Return the inputs of an asset from its metadata."""
    stored = metadata.get(READS, {})
    values = getattr(stored, "value", stored)
    return {
        name: type_adapter(Input).validate_python(fields) for name, fields in values.items()
    }


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


def table_spec(
    table: IcebergTable,
    *,
    description: str | None = None,
    deps: Sequence[dg.AssetKey] = (),
    kinds: frozenset[str] = frozenset(),
) -> dg.AssetSpec:
    """Return the asset spec of a table that no function of the project computes.

    :param description: default: the table's comment.
    :param deps: upstream assets.
    :param kinds: Dagster kinds in addition to `iceberg` and the layer.
    """
    return dg.AssetSpec(
        asset_key(table.name),
        description=description or table.comment,
        deps=deps,
        group_name=table.namespace,
        kinds={"iceberg", table.namespace, *kinds},
        owners=_owners(table),
        tags=table.tags,
        metadata=declared_metadata(table),
    )


QUARANTINE_GROUP = "quarantine"
"""Asset group of all quarantine tables; other tables are in the group of their layer."""


def quarantine_spec(table: IcebergTable) -> dg.AssetSpec | None:
    """Return the asset spec of a table's quarantine; None without a quarantine."""
    if table.quarantine is None:
        return None
    spec = table_spec(
        table.quarantine,
        description=(
            f"{table.quarantine.comment} `lakehouse quarantine {table.name}` counts and shows them,"
            f" and `lakehouse quarantine replay {table.name}` evaluates them again."
        ),
        deps=[asset_key(table.name)],
    )
    return spec.replace_attributes(group_name=QUARANTINE_GROUP)


def _owners(table: IcebergTable) -> list[str]:
    # Dagster accepts email addresses and teams.
    if not table.owner:
        return []
    return [table.owner if "@" in table.owner or ":" in table.owner else f"team:{table.owner}"]
