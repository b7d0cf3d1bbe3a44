"""The monthly cost of a table on S3: its storage, and the requests and maintenance of 30 days.

Reads without a recorded run, and the computation of runs, are not included. No JVM is started.
"""

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, Strict, StringConstraints, ValidationError

from lakehouse.errors import LakehouseError, TableNotFound, TableUnreadable, UsageError
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.health_measurement import read_table_health
from lakehouse.iceberg.metadata.history import History, read_history
from lakehouse.iceberg.upkeep.table_files import TableFiles, read_table_files
from lakehouse.maintenance.table_reads import recorded_reads
from lakehouse.maintenance.upkeep_log import past_upkeep
from lakehouse.maintenance.upkeep_record import UpkeepRecord
from lakehouse.maintenance.upkeep_round import Upkept

PRICES = Path(str(files("lakehouse.maintenance") / "prices.toml"))
_PERIOD = timedelta(days=30)
_GB = 10**9
_DPUS = 2
"""The smallest Spark job of Glue has two workers G.1X
(https://docs.aws.amazon.com/glue/latest/dg/add-job.html).
"""
_PUTS_PER_COMMIT = 3
"""metadata.json, a manifest list and a manifest."""
_GETS_PER_FILE = 2
"""Footer and columns of a Parquet file."""


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
    """The stored bytes of a table; each file is in one part."""

    live_bytes: int
    """Data files of main without the share of deleted rows."""
    historical_bytes: int
    """Files of older snapshots, branches and tags."""
    deleted_bytes: int
    """The share of deleted rows in data files of main, and its delete files."""
    orphaned_bytes: int | None
    """Unreferenced files; None if the location is not the table's own."""
    metadata_bytes: int

    @property
    def total_bytes(self) -> int:
        """The size of all known files."""
        unused = self.historical_bytes + self.deleted_bytes + (self.orphaned_bytes or 0)
        return self.live_bytes + unused + self.metadata_bytes


@dataclass(frozen=True)
class Traffic:
    """The recorded reads and writes of a table in 30 days."""

    written_bytes: int = 0
    """Files that runs added, in existing snapshots."""
    read_bytes: int | None = None
    """None if no metrics are stored."""
    puts: int = 0
    gets: int = 0


@dataclass(frozen=True)
class UpkeepCost:
    """The cost of one maintenance run of a table."""

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
    """The cost of a table per month, in US dollars."""

    table: str
    storage: Storage
    traffic: Traffic
    upkeep: tuple[UpkeepCost, ...]
    storage_dollars: float
    request_dollars: float

    @property
    def upkeep_dollars(self) -> float:
        """The cost of maintenance."""
        return sum(run.dollars for run in self.upkeep)

    @property
    def rewritten_bytes(self) -> int:
        """Bytes that maintenance wrote."""
        return sum(run.rewritten_bytes for run in self.upkeep)

    @property
    def dollars(self) -> float:
        """The total cost."""
        return self.storage_dollars + self.request_dollars + self.upkeep_dollars


def read_prices(file: Path = PRICES) -> Prices:
    """Read a file of prices.

    :raises UsageError: names the file, and the key that is invalid.
    """
    next_step = f"Copy {PRICES} and change its prices."
    if not file.is_file():
        raise UsageError(
            f"There is no file of prices {file}; expected TOML.", next_step=next_step
        )
    try:
        return Prices.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        key = ".".join(map(str, problem["loc"]))
        value = "" if problem["type"] == "missing" else f" is {problem['input']!r}"
        raise UsageError(
            f"{file}: {key}{value}: {problem['msg']}.", next_step=next_step
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is not TOML: {error}.", next_step=next_step) from error


def measure_costs(
    engine: Engine, upkept: Upkept, tables: Sequence[str], prices: Prices
) -> Iterator[tuple[str, TableCost | LakehouseError]]:
    """Yield the name and the cost of each table, or the error of one that cannot be read."""
    now = datetime.now(UTC)
    since = now - _PERIOD
    reads = recorded_reads(engine.catalog, upkept.metrics_table, since)
    reads_of: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for read in reads or ():
        reads_of[read["table_name"]].append(read)
    upkeep_of: dict[str, list[UpkeepRecord]] = defaultdict(list)
    for record in past_upkeep(engine.catalog, upkept.log.name, now).records:
        if record.ended_at >= since:
            upkeep_of[record.table].append(record)
    for table in tables:
        try:
            health = read_table_health(engine, table, lists_folder=False)
            files = read_table_files(engine, table)
            history = read_history(engine, table)
        except (TableUnreadable, TableNotFound) as error:
            yield table, error
            continue
        storage = measure_storage(files, health.deleted_row_share)
        traffic = measure_traffic(history, None if reads is None else reads_of[table], since)
        upkeep = cost_of_upkeep(upkeep_of[table], prices)
        yield table, price_table(table, storage, traffic, upkeep, prices)


def measure_storage(files: TableFiles, deleted_row_share: float) -> Storage:
    """Return the stored bytes of the files of a table.

    :param deleted_row_share: share of deleted rows in the data files of main; can exceed 1,
        since equality deletes can name rows that do not exist.
    """
    data_bytes = sum(files.main_data.values())
    deleted_bytes = round(data_bytes * min(1.0, deleted_row_share))
    seen = set(files.main_data)

    def unseen_bytes(sizes: Mapping[str, int]) -> int:
        unseen = sizes.keys() - seen
        seen.update(unseen)
        return sum(sizes[key] for key in unseen)

    return Storage(
        live_bytes=data_bytes - deleted_bytes,
        deleted_bytes=deleted_bytes + unseen_bytes(files.main_deletes),
        historical_bytes=unseen_bytes(files.of_snapshots),
        metadata_bytes=unseen_bytes(files.metadata),
        orphaned_bytes=None if files.listed is None else unseen_bytes(files.listed),
    )


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


def cost_of_upkeep(records: Iterable[UpkeepRecord], prices: Prices) -> tuple[UpkeepCost, ...]:
    """Return the cost of each maintenance run of a table, oldest first."""
    by_run: dict[str, list[UpkeepRecord]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record.ended_at):
        by_run[record.run_id].append(record)
    return tuple(_cost_of_run(run_id, steps, prices) for run_id, steps in by_run.items())


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


def price_table(
    table: str,
    storage: Storage,
    traffic: Traffic,
    upkeep: Sequence[UpkeepCost],
    prices: Prices,
) -> TableCost:
    """Return the cost of a table per month."""
    storage_dollars = storage.total_bytes / _GB * prices.dollars_per_gb_month.price
    puts_dollars = traffic.puts / 1000 * prices.dollars_per_1000_puts.price
    gets_dollars = traffic.gets / 1000 * prices.dollars_per_1000_gets.price
    return TableCost(
        table, storage, traffic, tuple(upkeep), storage_dollars, puts_dollars + gets_dollars
    )
