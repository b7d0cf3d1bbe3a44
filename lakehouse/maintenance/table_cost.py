"""Cost of a table: storage, traffic and upkeep of the last 30 days, in bytes and dollars.

Local tables are priced as if they were on S3. Reads without run metrics and compute of runs are
not included, see docs/upkeep.md.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lakehouse.iceberg.metadata.history import History
from lakehouse.iceberg.upkeep.table_files import TableFiles
from lakehouse.maintenance.prices import Prices
from lakehouse.maintenance.upkeep_record import UpkeepRecord

COST_WINDOW = timedelta(days=30)
GB = 10**9
UPKEEP_DPUS = 2
"""DPUs for the price of upkeep: the smallest Spark job of Glue, two G.1X workers
(https://docs.aws.amazon.com/glue/latest/dg/add-job.html). The minimum of one minute is ignored.
"""
METADATA_PUTS_A_COMMIT = 3
"""metadata.json, manifest list and one manifest; some commits write more manifests."""
GETS_A_FILE = 2
"""Footer and columns of a Parquet file; more for files with many row groups."""


@dataclass(frozen=True)
class Storage:
    """Bytes of a table; each file is in exactly one category."""

    live_bytes: int
    """Current data files without the share of deleted rows."""
    historical_bytes: int
    """Files that only older snapshots, branches or tags reference."""
    deleted_bytes: int
    """The share of deleted rows in current data files, and delete files."""
    orphaned_bytes: int | None
    """Unreferenced files in the table location; None if they can belong to another table."""
    metadata_bytes: int

    @property
    def total_bytes(self) -> int:
        """All bytes, without orphans if they are unknown."""
        live_and_deleted = self.live_bytes + self.deleted_bytes
        unused = self.historical_bytes + (self.orphaned_bytes or 0)
        return live_and_deleted + unused + self.metadata_bytes


@dataclass(frozen=True)
class Traffic:
    """Recorded reads and writes of a table in the last 30 days."""

    written_bytes: int = 0
    """Data and delete files that runs added, in existing snapshots."""
    read_bytes: int | None = None
    """Bytes read by runs: recorded share of files times snapshot size; None without metrics."""
    puts: int = 0
    """Files written by runs and upkeep, in existing snapshots."""
    gets: int = 0
    """GET requests of runs for data files."""


@dataclass(frozen=True)
class UpkeepCost:
    """Cost of one upkeep run of a table."""

    run_id: str
    ended_at: datetime
    steps: tuple[str, ...]
    read_bytes: int
    """Size of the replaced files."""
    rewritten_bytes: int
    """Size of the new files."""
    gets: int
    seconds: float
    dollars: float
    """DPU hours and data file reads; its writes are part of the table's puts."""

    @property
    def dpu_hours(self) -> float:
        """Duration times `UPKEEP_DPUS`."""
        return _dpu_hours(self.seconds)


@dataclass(frozen=True)
class TableCost:
    """Cost of a table in US dollars per month: current storage, requests and upkeep of 30 days."""

    table: str
    storage: Storage
    traffic: Traffic
    upkeep: tuple[UpkeepCost, ...]
    storage_dollars: float
    request_dollars: float
    """Reads and writes by runs, and writes by upkeep."""

    @property
    def upkeep_dollars(self) -> float:
        """Sum of all upkeep runs."""
        return sum(run.dollars for run in self.upkeep)

    @property
    def rewritten_bytes(self) -> int:
        """Bytes that upkeep rewrote."""
        return sum(run.rewritten_bytes for run in self.upkeep)

    @property
    def dollars(self) -> float:
        """Total."""
        return self.storage_dollars + self.request_dollars + self.upkeep_dollars


def measure_storage(files: TableFiles, deleted_row_share: float) -> Storage:
    """Return the storage of a table; each file counts once.

    :param deleted_row_share: share of rows in current data files that delete files remove;
        limited to 1, since equality deletes can refer to missing rows.
    """
    data_bytes = sum(files.main_data.values())
    taken_off_bytes = round(data_bytes * min(1.0, deleted_row_share))
    named = set(files.main_data)
    deletes_bytes = _add_unseen(files.main_deletes, named)
    historical_bytes = _add_unseen(files.of_snapshots, named)
    metadata_bytes = _add_unseen(files.metadata, named)
    return Storage(
        live_bytes=data_bytes - taken_off_bytes,
        historical_bytes=historical_bytes,
        deleted_bytes=taken_off_bytes + deletes_bytes,
        orphaned_bytes=None if files.listed is None else _add_unseen(files.listed, named),
        metadata_bytes=metadata_bytes,
    )


def _add_unseen(sizes: Mapping[str, int], seen: set[str]) -> int:
    """Return the size of files not yet in `seen`, and add them."""
    unseen = sizes.keys() - seen
    seen |= unseen
    return sum(sizes[key] for key in unseen)


def measure_traffic(
    history: History, reads: Iterable[Mapping[str, Any]] | None, since: datetime
) -> Traffic:
    """Return the traffic of a table since a time.

    :param reads: rows of the metric `read_share` of this table; None without metrics. A read of
        an expired snapshot counts with the current size.
    """
    written_bytes = puts = 0
    for snapshot in history.snapshots.values():
        if snapshot.committed_at < since:
            continue
        puts += METADATA_PUTS_A_COMMIT
        puts += snapshot.count("added-data-files") + snapshot.count("added-delete-files")
        # `replace` moves rows to other files: that is upkeep, which has its own records.
        if snapshot.operation != "replace":
            written_bytes += snapshot.count("added-files-size")
    if reads is None:
        return Traffic(written_bytes, None, puts)
    read_bytes = read_files = 0.0
    for read in reads:
        snapshot_read = history.snapshots.get(read["snapshot_id"], history.main)
        if snapshot_read is not None:
            read_bytes += read["value"] * snapshot_read.count("total-files-size")
            read_files += read["value"] * snapshot_read.count("total-data-files")
    return Traffic(written_bytes, round(read_bytes), puts, GETS_A_FILE * round(read_files))


def cost_of_upkeep(records: Iterable[UpkeepRecord], prices: Prices) -> tuple[UpkeepCost, ...]:
    """Return the cost of each upkeep run of a table, oldest first.

    :param records: records of this table only.
    """
    by_run: dict[str, list[UpkeepRecord]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record.ended_at):
        by_run[record.run_id].append(record)
    return tuple(_cost_of_run(run_id, steps, prices) for run_id, steps in by_run.items())


def _cost_of_run(run_id: str, records: Sequence[UpkeepRecord], prices: Prices) -> UpkeepCost:
    gets = GETS_A_FILE * round(_sum_figure(records, "rewritten_files"))
    seconds = _sum_figure(records, "seconds")
    return UpkeepCost(
        run_id=run_id,
        ended_at=records[-1].ended_at,
        steps=tuple(record.step for record in records),
        read_bytes=round(_sum_figure(records, "rewritten_bytes")),
        rewritten_bytes=round(_sum_figure(records, "added_bytes")),
        gets=gets,
        seconds=seconds,
        dollars=_dpu_hours(seconds) * prices.dollars_per_dpu_hour.price
        + gets / 1000 * prices.dollars_per_1000_gets.price,
    )


def _sum_figure(records: Iterable[UpkeepRecord], name: str) -> float:
    return sum(record.step_metrics.get(name, 0) for record in records)


def _dpu_hours(seconds: float) -> float:
    return seconds * UPKEEP_DPUS / 3600


def price_table(
    table: str,
    storage: Storage,
    traffic: Traffic,
    upkeep: Sequence[UpkeepCost],
    prices: Prices,
) -> TableCost:
    """Return the monthly cost of a table."""
    puts_dollars = traffic.puts / 1000 * prices.dollars_per_1000_puts.price
    gets_dollars = traffic.gets / 1000 * prices.dollars_per_1000_gets.price
    return TableCost(
        table=table,
        storage=storage,
        traffic=traffic,
        upkeep=tuple(upkeep),
        storage_dollars=storage.total_bytes / GB * prices.dollars_per_gb_month.price,
        request_dollars=puts_dollars + gets_dollars,
    )
