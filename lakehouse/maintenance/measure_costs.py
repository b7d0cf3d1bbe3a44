"""What tables cost, measured from their metadata, a listing, and the records of runs and upkeep;
no JVM.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.health_measurement import read_table_health
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.upkeep.table_files import read_table_files
from lakehouse.maintenance.prices import Prices
from lakehouse.maintenance.table_cost import (
    COUNTED,
    TableCost,
    cost_of_upkeep,
    measure_storage,
    measure_traffic,
    price_table,
)
from lakehouse.maintenance.table_reads import recorded_reads
from lakehouse.maintenance.upkeep_log import past_upkeep
from lakehouse.maintenance.upkeep_record import UpkeepRecord
from lakehouse.maintenance.upkeep_round import Upkept


def measure_costs(
    engine: Engine,
    upkept: Upkept,
    tables: Sequence[str],
    prices: Prices,
    now: datetime | None = None,
) -> Iterator[TableCost]:
    """Yield what each table costs.

    :param tables: names of tables that are there.
    """
    now = now or datetime.now(UTC)
    since = now - COUNTED
    reads = recorded_reads(engine.catalog, upkept.metrics_table, since)
    reads_of: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for read in reads or ():
        reads_of[read["table_name"]].append(read)
    upkeep_of: dict[str, list[UpkeepRecord]] = defaultdict(list)
    for record in past_upkeep(engine.catalog, upkept.log.name, now).records:
        if record.ended_at >= since:
            upkeep_of[record.table].append(record)
    for table in tables:
        health = read_table_health(engine, table, lists_folder=False, now=now)
        storage = measure_storage(read_table_files(engine, table), health.deleted_row_share)
        reads_of_table = None if reads is None else reads_of[table]
        traffic = measure_traffic(read_history(engine, table), reads_of_table, since)
        upkeep = cost_of_upkeep(upkeep_of[table], prices)
        yield price_table(table, storage, traffic, upkeep, prices)
