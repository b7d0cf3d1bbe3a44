"""Asset specs from table declarations."""

from collections.abc import Sequence

import dagster as dg

from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.written_metadata import declared_metadata
from lakehouse.tables.table import IcebergTable


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
            f" and `lakehouse quarantine replay {table.name}` judges them again."
        ),
        deps=[asset_key(table.name)],
    )
    return spec.replace_attributes(group_name=QUARANTINE_GROUP)


def _owners(table: IcebergTable) -> list[str]:
    # Dagster accepts email addresses and teams.
    if not table.owner:
        return []
    return [table.owner if "@" in table.owner or ":" in table.owner else f"team:{table.owner}"]
