"""Upkeep records in an Iceberg table: one append per run, read without Spark.

A table, not a local file: hosts with the same catalog share it, and SQL can query it.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.write.append_without_spark import append_once
from lakehouse.maintenance.past_upkeep import PastUpkeep
from lakehouse.maintenance.upkeep_record import UpkeepRecord
from lakehouse.tables.table import IcebergTable

REMEMBERED = timedelta(days=90)
"""Age limit of records for planning: older ineffective runs are tried again."""
ENDED_AT = "ended_at"


def record_upkeep(
    engine: Engine, log: IcebergTable, records: Sequence[UpkeepRecord], run_id: str
) -> int | None:
    """Append the records of a run in one commit; return its snapshot id.

    None without records or if the run is already recorded.

    :param log: the table `monitoring.upkeep_runs`.
    :param run_id: unique id of the run.
    """
    if not records:
        return None
    rows = [_row(record, run_id) for record in records]
    return append_once(engine, log, rows, run_id, made_at=ENDED_AT)


def past_upkeep(catalog: Catalog, log_name: str, now: datetime) -> PastUpkeep:
    """Return the upkeep records of the last 90 days; empty without any."""
    if not catalog.has(log_name):
        return PastUpkeep()
    from pyiceberg.expressions import GreaterThanOrEqual

    since = now - REMEMBERED
    # mypy's stubs, derived from pydantic fields, hide the PyIceberg constructors.
    recent = GreaterThanOrEqual(ENDED_AT, since.isoformat())  # type: ignore[call-arg,arg-type]
    scan = catalog.load(log_name).scan(recent, selected_fields=("record",))
    rows = scan.to_arrow().to_pylist()
    return PastUpkeep(tuple(UpkeepRecord.from_json(row["record"]) for row in rows))


def _row(record: UpkeepRecord, run_id: str) -> dict[str, Any]:
    return {
        "table_name": record.table,
        "step": record.step,
        "outcome": record.outcome,
        "reason": record.reason or None,
        ENDED_AT: record.ended_at,
        "promised_fewer_files": record.promised_fewer_files,
        "fewer_files": record.fewer_files,
        "promised_cost_bytes": record.promised_cost_bytes,
        "cost_bytes": record.cost_bytes,
        "seconds": record.step_metrics.get("seconds"),
        "record": record.to_json(),
        "run_id": run_id,
    }
