"""What a table costs: bytes kept, bytes read and written in the last 30 days, what each upkeep
came to, and the money for it; pure arithmetic.

Tables on a laptop are reckoned as if they were on S3. What is not known is left out, and said
in docs/upkeep.md: reads that no run recorded, and what runs compute.
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

COUNTED = timedelta(days=30)
GB = 10**9
UPKEEP_DPUS = 2
"""Upkeep is reckoned as the smallest Spark job of Glue, for as many seconds as it took: two
workers G.1X (https://docs.aws.amazon.com/glue/latest/dg/add-job.html). Glue's least of a minute
is left out.
"""
METADATA_PUTS_A_COMMIT = 3
"""metadata.json, a manifest list and a manifest; some commits write more manifests."""
GETS_A_FILE = 2
"""Footer and columns of a Parquet file; a file of many row groups takes more."""


@dataclass(frozen=True)
class Storage:
    """The bytes that a table keeps, each file in one part alone."""

    live_bytes: int
    """Data files of main, without the share of their rows that delete files take off."""
    historical_bytes: int
    """Data and delete files that only older snapshots, branches or tags name."""
    deleted_bytes: int
    """That share of main's data files, and its delete files."""
    orphaned_bytes: int | None
    """Files in the table's location that nothing names; None where they may be another
    table's.
    """
    metadata_bytes: int

    @property
    def total_bytes(self) -> int:
        """All of it, without orphans where they are not known."""
        live_and_deleted = self.live_bytes + self.deleted_bytes
        unused = self.historical_bytes + (self.orphaned_bytes or 0)
        return live_and_deleted + unused + self.metadata_bytes


@dataclass(frozen=True)
class Traffic:
    """What was read and written of a table in the last 30 days, as far as it is recorded."""

    written_bytes: int = 0
    """Data and delete files that runs added, in snapshots that are kept."""
    read_bytes: int | None = None
    """What runs read: the share of files that they recorded, of the snapshot's size; None
    where no metrics are kept.
    """
    puts: int = 0
    """Files written by runs and by upkeep, in snapshots that are kept."""
    gets: int = 0
    """Requests for data files read by runs."""


@dataclass(frozen=True)
class UpkeepCost:
    """What one round of upkeep of a table cost."""

    run_id: str
    ended_at: datetime
    steps: tuple[str, ...]
    read_bytes: int
    """Size of the files that were written again."""
    rewritten_bytes: int
    """Size of the files that took their place."""
    gets: int
    seconds: float
    dollars: float
    """Its DPU-hours and the reads of data files; what it wrote is among the table's puts."""

    @property
    def dpu_hours(self) -> float:
        """Its seconds on as many DPUs as upkeep is reckoned with."""
        return _dpu_hours(self.seconds)


@dataclass(frozen=True)
class TableCost:
    """What a table costs a month, in US dollars: what it keeps now, kept for a month, and the
    last 30 days of requests and upkeep.
    """

    table: str
    storage: Storage
    traffic: Traffic
    upkeep: tuple[UpkeepCost, ...]
    storage_dollars: float
    request_dollars: float
    """Reads and writes by runs, and writes by upkeep."""

    @property
    def upkeep_dollars(self) -> float:
        """What the rounds of upkeep cost together."""
        return sum(run.dollars for run in self.upkeep)

    @property
    def rewritten_bytes(self) -> int:
        """Bytes that upkeep wrote again."""
        return sum(run.rewritten_bytes for run in self.upkeep)

    @property
    def dollars(self) -> float:
        """All of it."""
        return self.storage_dollars + self.request_dollars + self.upkeep_dollars


def measure_storage(files: TableFiles, deleted_row_share: float) -> Storage:
    """Return what the files of a table take, each counted once.

    :param deleted_row_share: share of the rows in main's data files that delete files take
        off; at most 1 counts, since equality deletes may name rows that are not there.
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
    """Return the size of the files that were not seen yet; they are seen then."""
    unseen = sizes.keys() - seen
    seen |= unseen
    return sum(sizes[key] for key in unseen)


def measure_traffic(
    history: History, reads: Iterable[Mapping[str, Any]] | None, since: datetime
) -> Traffic:
    """Return what was read and written of a table since a moment.

    :param reads: rows of the metric `read_share` of this table since then; None where none are
        kept. A read of a snapshot that has expired is taken for one of main's size.
    """
    written_bytes = puts = 0
    for snapshot in history.snapshots.values():
        if snapshot.committed_at < since:
            continue
        puts += METADATA_PUTS_A_COMMIT
        puts += snapshot.count("added-data-files") + snapshot.count("added-delete-files")
        # A replace moves rows to other files: upkeep, which keeps records of its own.
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
    """Return what each round of upkeep of a table cost, oldest first.

    :param records: of this table alone.
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
    return sum(record.figures.get(name, 0) for record in records)


def _dpu_hours(seconds: float) -> float:
    return seconds * UPKEEP_DPUS / 3600


def price_table(
    table: str,
    storage: Storage,
    traffic: Traffic,
    upkeep: Sequence[UpkeepCost],
    prices: Prices,
) -> TableCost:
    """Return what a table costs a month."""
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
