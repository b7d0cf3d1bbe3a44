"""The records of upkeep in a table of their own: appended once a round, read without Spark.

A table, and no file beside the home: hosts that share a catalog share what upkeep came to, SQL
answers what it cost, and Dagster shows each append.
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
"""How far back records decide: what was in vain a quarter ago may be tried again."""
ENDED_AT = "ended_at"


def record_upkeep(
    engine: Engine, log: IcebergTable, records: Sequence[UpkeepRecord], run_id: str
) -> int | None:
    """Append the records of a round in one commit; return its snapshot, or None where nothing
    was done, or the round is recorded already.

    :param log: the table `monitoring.upkeep_runs`.
    :param run_id: of the round; another one each time.
    """
    if not records:
        return None
    rows = [_row(record, run_id) for record in records]
    return append_once(engine, log, rows, run_id, made_at=ENDED_AT)


def past_upkeep(catalog: Catalog, log_name: str, now: datetime) -> PastUpkeep:
    """Return what upkeep has come to in the last 90 days; nothing where none was recorded."""
    if not catalog.has(log_name):
        return PastUpkeep()
    from pyiceberg.expressions import GreaterThanOrEqual

    since = now - REMEMBERED
    # The stubs that mypy derives from pydantic's fields hide the constructors that PyIceberg
    # has.
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
        "seconds": record.figures.get("seconds"),
        "record": record.to_json(),
        "run_id": run_id,
    }
