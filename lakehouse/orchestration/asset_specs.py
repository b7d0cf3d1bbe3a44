"""What the declaration of a table says to Dagster's catalog."""

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
    """Return what the declaration says of a table to Dagster's catalog: an asset that no function
    of the project computes.

    :param description: what Dagster shows of it; its comment, if left out.
    :param deps: what it is computed from.
    :param kinds: the marks that it has in Dagster besides `iceberg` and its layer.
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
"""The asset group of all quarantine tables; that of the other tables is their layer."""


def quarantine_spec(table: IcebergTable) -> dg.AssetSpec | None:
    """Return the quarantine of a table as an asset that the table's own runs fill; None where
    it has none.
    """
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
    # Dagster takes addresses and teams.
    if not table.owner:
        return []
    return [table.owner if "@" in table.owner or ":" in table.owner else f"team:{table.owner}"]
