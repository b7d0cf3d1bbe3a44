"""Measures table costs from metadata, a file listing, run metrics and upkeep records; no JVM."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lakehouse.errors import TableNotFound, TableUnreadable
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.health_measurement import read_table_health
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.upkeep.table_files import read_table_files
from lakehouse.maintenance.prices import Prices
from lakehouse.maintenance.table_cost import (
    COST_WINDOW,
    Storage,
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


@dataclass(frozen=True)
class MeasuredCosts:
    """Costs of tables, and the reasons for tables that could not be measured."""

    costs: Sequence[TableCost]
    unread: Mapping[str, str]


def measure_costs(
    engine: Engine,
    upkept: Upkept,
    tables: Sequence[str],
    prices: Prices,
    *,
    named_by_user: bool,
    now: datetime | None = None,
) -> MeasuredCosts:
    """Return the cost of each table.

    A table that cannot be read or was dropped is skipped, unless a user named it.

    :param tables: names of existing tables.
    """
    now = now or datetime.now(UTC)
    since = now - COST_WINDOW
    reads = recorded_reads(engine.catalog, upkept.metrics_table, since)
    reads_of: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for read in reads or ():
        reads_of[read["table_name"]].append(read)
    upkeep_of: dict[str, list[UpkeepRecord]] = defaultdict(list)
    for record in past_upkeep(engine.catalog, upkept.log.name, now).records:
        if record.ended_at >= since:
            upkeep_of[record.table].append(record)
    costs, unread = [], {}
    for table in tables:
        try:
            storage = _read_storage(engine, table)
            history = read_history(engine, table)
        except (TableUnreadable, TableNotFound) as error:
            if named_by_user:
                raise
            unread[table] = str(error)
            continue
        traffic = measure_traffic(history, None if reads is None else reads_of[table], since)
        upkeep = cost_of_upkeep(upkeep_of[table], prices)
        costs.append(price_table(table, storage, traffic, upkeep, prices))
    return MeasuredCosts(costs, unread)


def _read_storage(engine: Engine, table: str) -> Storage:
    health = read_table_health(engine, table, lists_folder=False)
    return measure_storage(read_table_files(engine, table), health.deleted_row_share)
