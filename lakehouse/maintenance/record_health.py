"""The health of tables measured, appended to its table in one commit, and shown in
Dagster.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from lakehouse.errors import TableNotFound, TableUnreadable
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.health_measurement import read_table_health
from lakehouse.iceberg.metadata.measured_health import SnapshotPin, TableHealth
from lakehouse.iceberg.write.append_without_spark import append_once
from lakehouse.maintenance.health_figures import health_figures
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.metadata_keys import health_metadata
from lakehouse.tables.table import IcebergTable

MEASURED_AT = "measured_at"
FindPins = Callable[[str], Sequence[SnapshotPin]]
_log = logging.getLogger(__name__)


def record_health(
    instance: dg.DagsterInstance,
    engine: Engine,
    health_table: IcebergTable,
    tables: Sequence[str],
    declared: Collection[str],
    occasion: str,
    *,
    known: Mapping[str, TableHealth] | None = None,
    find_pins: FindPins | None = None,
    now: datetime | None = None,
    looked: Engine | None = None,
) -> list[TableHealth]:
    """Measure tables, append their health in one commit, and show it in Dagster; return it.

    One that cannot be read, or is dropped meanwhile, is left out and logged. An occasion, such as a
    run's id, is recorded once: of the same again nothing is written.

    :param health_table: `monitoring.table_health`.
    :param declared: names of the tables that Dagster knows; others only get their row.
    :param known: what was measured a moment ago, by table; one that did not change since is not
        measured again.
    :param find_pins: returns what pins old snapshots of a table.
    :param looked: what tables are measured by, such as `at_one_moment`; `engine` where left out.
    """
    now = now or datetime.now(UTC)
    measured = []
    for table in tables:
        try:
            known_health = (known or {}).get(table)
            measured.append(_measure(looked or engine, table, known_health, find_pins, now))
        except (TableUnreadable, TableNotFound) as error:
            _log.warning("The health of %s was not measured: %s", table, error)
    rows = [_row(health, occasion) for health in measured]
    if not rows:
        return measured
    if append_once(engine, health_table, rows, occasion, made_at=MEASURED_AT) is not None:
        for health in measured:
            if health.table in declared:
                instance.report_runless_asset_event(_observation(health))
    return measured


def _measure(
    engine: Engine,
    table: str,
    known: TableHealth | None,
    find_pins: FindPins | None,
    now: datetime,
) -> TableHealth:
    if known and known.metadata_location == engine.catalog.load(table).metadata_location:
        return replace(known, measured_at=now)
    pins = find_pins(table) if find_pins else ()
    return read_table_health(engine, table, pins=pins, now=now)


def _row(health: TableHealth, occasion: str) -> Mapping[str, Any]:
    return {
        "table_name": health.table,
        MEASURED_AT: health.measured_at,
        "snapshot_id": health.snapshot_id,
        **health_figures(health),
        "run_id": occasion,
    }


def _observation(health: TableHealth) -> dg.AssetObservation:
    return dg.AssetObservation(
        asset_key(health.table), metadata=health_metadata(health_figures(health))
    )
