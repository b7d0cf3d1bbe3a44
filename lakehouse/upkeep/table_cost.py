"""The monthly storage cost of a table on S3; no JVM is started."""

import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, Strict, StringConstraints

from lakehouse.errors import LakehouseError, TableNotFound, TableUnreadable, UsageError
from lakehouse.iceberg.catalog.damaged_metadata import explain_table
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.health_measurement import measure_health
from lakehouse.iceberg.metadata.manifests import CONTENTS
from lakehouse.iceberg.metadata.referenced_files import NamedFile, all_named_files, stored_size
from lakehouse.iceberg.metadata.table_locations import list_location
from lakehouse.iceberg.upkeep.remove_orphans import keeps_all_files, tables_in_location

PRICES = Path(__file__).with_name("prices.toml")
_GB = 10**9


class Price(BaseModel, extra="forbid", frozen=True):
    """A price in US dollars with its source."""

    price: Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)]
    source: Annotated[str, StringConstraints(min_length=1)]
    as_of: Annotated[date, Strict()]


class Prices(BaseModel, frozen=True):
    """A price file; prices of earlier releases are ignored. A GB is 10^9 bytes."""

    dollars_per_gb_month: Price


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

    def dollars(self, price: Price) -> float:
        """Return the cost per month."""
        return self.total_bytes / _GB * price.price


def read_price(file: Path = PRICES) -> Price:
    """Read the price of a GB-month; an error names the file and its invalid keys."""
    try:
        prices = Prices.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{file} is not a valid price file: {error}.",
            next_step=f"Copy {PRICES} and change its prices.",
        ) from error
    return prices.dollars_per_gb_month


def measure_storage(
    engine: Engine, tables: Sequence[str]
) -> Iterator[tuple[str, Storage | LakehouseError]]:
    """Yield the name and the storage of each table, or the error of one that cannot be read."""
    for table in tables:
        try:
            yield table, read_storage(engine, table)
        except (TableUnreadable, TableNotFound) as error:
            yield table, error


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
