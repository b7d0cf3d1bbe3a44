"""The engine's dependencies: a catalog, a lazy Spark session, and a folder for locks."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.values.write_events import NO_LISTENER, WriteListener
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse.storage.object_store import ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Engine:
    """One catalog and the Spark session that computes its tables.

    - `session` is called only if Spark is needed; PyIceberg reads start no JVM.
    - `lock_dir` contains one lock file per table, shared by all processes.
    - `masking_key` is the key of the hash that replaces personal values.
    - `listener` receives write events.
    - `open_store` opens the store for staged rows; Spark accesses it with `store_options`.
    """

    catalog: Catalog
    session: "Callable[[], SparkSession]"
    lock_dir: Path
    masking_key: bytes
    listener: WriteListener = NO_LISTENER
    page: Callable[[], str] = str
    """URL of the Spark UI on a cluster; empty otherwise."""
    open_store: Callable[[], ObjectStore] | None = None
    store_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def store(self) -> ObjectStore:
        """The store for staged rows: the bucket, or the home that contains the locks."""
        return self.open_store() if self.open_store else LocalObjectStore(self.lock_dir.parent)

    @property
    def spark(self) -> "SparkSession":
        """The Spark session with the catalog, started on first use."""
        return self.session()

    def within(self, tables: Iterable[str]) -> "Engine":
        """Return an engine that lists only the namespaces of some tables; see `Catalog.within`."""
        return replace(self, catalog=self.catalog.within(tables))

    def sql(self, statement: str, **parameters: Any) -> "DataFrame":
        """Run a Spark SQL statement with named parameters (`:name`)."""
        return self.spark.sql(statement, args=parameters or None)
