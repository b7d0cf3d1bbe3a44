"""The monthly cost of a table on S3: its storage, and the requests and maintenance of 30 days.

Reads without a recorded run, and the computation of runs, are not included. No JVM is started.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, Strict, StringConstraints

from lakehouse.errors import LakehouseError, TableNotFound, TableUnreadable, UsageError
from lakehouse.iceberg.catalog.damaged_metadata import explain_table
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.health_measurement import measure_health
from lakehouse.iceberg.metadata.manifests import CONTENTS
from lakehouse.iceberg.metadata.referenced_files import NamedFile, all_named_files, stored_size
from lakehouse.iceberg.metadata.snapshots import History, history_of
from lakehouse.iceberg.metadata.table_locations import list_location
from lakehouse.iceberg.upkeep.remove_orphans import tables_in_location
from lakehouse.iceberg.upkeep.stored_files import keeps_all_files
from lakehouse.upkeep.table_reads import recorded_reads
from lakehouse.upkeep.upkeep_records import UpkeepRecord, past_upkeep
from lakehouse.upkeep.upkeep_run import Upkept

PRICES = Path(__file__).with_name("prices.toml")
_PERIOD = timedelta(days=30)
_GB = 10**9
_DPUS = 2  # of the smallest job: https://docs.aws.amazon.com/glue/latest/dg/add-job.html
_PUTS_PER_COMMIT = 3  # metadata.json, a manifest list and a manifest
_GETS_PER_FILE = 2  # footer and columns of a Parquet file


class Price(BaseModel, extra="forbid", frozen=True):
    """A price in US dollars with its source."""

    price: Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)]
    source: Annotated[str, StringConstraints(min_length=1)]
    as_of: Annotated[date, Strict()]


class Prices(BaseModel, extra="forbid", frozen=True):
    """All prices. A GB is 10^9 bytes."""

    dollars_per_gb_month: Price
    dollars_per_1000_puts: Price
    dollars_per_1000_gets: Price
    dollars_per_dpu_hour: Price


@dataclass(frozen=True)
class Storage:
    """The stored bytes of a table; each file counts once."""

    live_bytes: int  # data files of main without the share of deleted rows
    historical_bytes: int  # files of older snapshots, branches and tags
    deleted_bytes: int  # the share of deleted rows in files of main, and its delete files
    orphaned_bytes: int | None  # unreferenced; None if the location is not the table's own
    metadata_bytes: int

    @property
    def total_bytes(self) -> int:
        """The size of all known files."""
        return sum(size_bytes or 0 for size_bytes in vars(self).values())


@dataclass(frozen=True)
class Traffic:
    """The recorded reads and writes of a table in 30 days; `read_bytes` is None without metrics."""

    written_bytes: int = 0
    read_bytes: int | None = None
    puts: int = 0
    gets: int = 0


@dataclass(frozen=True)
class UpkeepCost:
    """The cost of one upkeep run of a table."""

    run_id: str
    ended_at: datetime
    steps: tuple[str, ...]
    read_bytes: int
    rewritten_bytes: int
    gets: int
    seconds: float
    dpu_hours: float
    dollars: float


@dataclass(frozen=True)
class TableCost:
    """The cost of a table per month, in US dollars; `rewritten_bytes` are those of upkeep."""

    table: str
    storage: Storage
    traffic: Traffic
    upkeep: tuple[UpkeepCost, ...]
    rewritten_bytes: int
    storage_dollars: float
    request_dollars: float
    upkeep_dollars: float

    @property
    def dollars(self) -> float:
        """The total cost."""
        return self.storage_dollars + self.request_dollars + self.upkeep_dollars


def read_prices(file: Path = PRICES) -> Prices:
    """Read a file of prices; an error names the file and its invalid keys."""
    try:
        return Prices.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{file} is not a valid price file: {error}.",
            next_step=f"Copy {PRICES} and change its prices.",
        ) from error


def measure_costs(
    engine: Engine, upkept: Upkept, tables: Sequence[str], prices: Prices
) -> Iterator[tuple[str, TableCost | LakehouseError]]:
    """Yield the name and the cost of each table, or the error of one that cannot be read."""
    now = datetime.now(UTC)
    since = now - _PERIOD
    reads = recorded_reads(engine.catalog, upkept.metrics_table, since)
    past = past_upkeep(engine.catalog, upkept.log.name, now)
    for table in tables:
        try:
            storage = read_storage(engine, table)
            history = history_of(table, engine.catalog.load(table))
        except (TableUnreadable, TableNotFound) as error:
            yield table, error
            continue
        reads_of_table = None if reads is None else reads.get(table, ())
        traffic = measure_traffic(history, reads_of_table, since)
        records = [record for record in past.of_table(table) if record.ended_at >= since]
        yield table, price_table(table, storage, traffic, records, prices)


def read_storage(engine: Engine, table: str) -> Storage:
    """Read the stored bytes of a table: each manifest once, and one listing."""
    with explain_table(table):
        listed = list_location(engine.catalog.load(table)).items()
        stored_bytes = {key: file.size_bytes for key, file in listed}
        # References are read last: otherwise new commits would look like orphans.
        loaded = engine.catalog.load(table)
        deleted_share = measure_health(table, loaded, lists_folder=False).deleted_row_share
        named = all_named_files(loaded)
        sizes: Counter[str] = Counter()
        for key, file in named.items():
            # A metadata file without a size can be outside of the location, or missing.
            size_bytes = file.size_bytes or stored_bytes.get(key)
            sizes[_part_of(file)] += size_bytes or stored_size(loaded, file.path) or 0
    orphaned = [stored_bytes[key] for key in stored_bytes.keys() - named.keys()]
    is_shared = keeps_all_files(loaded) or bool(orphaned and tables_in_location(engine, table))
    # Equality deletes can name rows that do not exist, so the share can exceed 1.
    deleted_bytes = round(sizes["live"] * min(1.0, deleted_share))
    return Storage(
        live_bytes=sizes["live"] - deleted_bytes,
        historical_bytes=sizes["historical"],
        deleted_bytes=deleted_bytes + sizes["deletes"],
        orphaned_bytes=None if is_shared else sum(orphaned),
        metadata_bytes=sizes["metadata"],
    )


def _part_of(file: NamedFile) -> str:
    if file.kind not in CONTENTS:
        return "metadata"
    of_main = "live" if file.kind == "data" else "deletes"
    return of_main if file.is_of_main else "historical"


def measure_traffic(
    history: History, reads: Iterable[Mapping[str, Any]] | None, since: datetime
) -> Traffic:
    """Return the reads and writes of a table since a timestamp.

    :param reads: rows of the metric `read_share`; None if none are stored. A read of an expired
        snapshot counts as a read of main.
    """
    written_bytes = puts = 0
    for snapshot in history.snapshots.values():
        if snapshot.committed_at >= since:
            puts += _PUTS_PER_COMMIT
            puts += snapshot.count("added-data-files") + snapshot.count("added-delete-files")
            # Maintenance has its own records.
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
    return Traffic(written_bytes, round(read_bytes), puts, _GETS_PER_FILE * round(read_files))


def price_table(
    table: str,
    storage: Storage,
    traffic: Traffic,
    upkeep: Sequence[UpkeepRecord],
    prices: Prices,
) -> TableCost:
    """Return the cost of a table per month; `upkeep` are the records of its steps, oldest first."""
    by_run = groupby(upkeep, key=lambda record: record.run_id)
    runs = tuple(_cost_of_run(run_id, list(steps), prices) for run_id, steps in by_run)
    return TableCost(
        table,
        storage,
        traffic,
        runs,
        rewritten_bytes=sum(run.rewritten_bytes for run in runs),
        upkeep_dollars=sum(run.dollars for run in runs),
        storage_dollars=storage.total_bytes / _GB * prices.dollars_per_gb_month.price,
        request_dollars=traffic.puts / 1000 * prices.dollars_per_1000_puts.price
        + traffic.gets / 1000 * prices.dollars_per_1000_gets.price,
    )


def _cost_of_run(run_id: str, records: Sequence[UpkeepRecord], prices: Prices) -> UpkeepCost:
    def total(name: str) -> float:
        return sum(record.step_metrics.get(name, 0) for record in records)

    gets = _GETS_PER_FILE * round(total("rewritten_files"))
    dpu_hours = total("seconds") * _DPUS / 3600
    gets_dollars = gets / 1000 * prices.dollars_per_1000_gets.price
    return UpkeepCost(
        run_id,
        records[-1].ended_at,
        tuple(record.step for record in records),
        read_bytes=round(total("rewritten_bytes")),
        rewritten_bytes=round(total("added_bytes")),
        gets=gets,
        seconds=total("seconds"),
        dpu_hours=dpu_hours,
        dollars=dpu_hours * prices.dollars_per_dpu_hour.price + gets_dollars,
    )
