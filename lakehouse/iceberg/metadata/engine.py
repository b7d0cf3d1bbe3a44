"""What the machinery works with: a catalog, a Spark session on demand, and a place for
locks.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.write_events import NOBODY_LISTENS, WriteListener
from lakehouse.storage.object_store import LocalObjectStore, ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Engine:
    """One catalog and the Spark that computes its tables.

    `session` is called only when Spark is needed: what PyIceberg can answer starts no JVM.
    `lock_dir` holds one lock file for each table; processes that share it take turns.
    `masking_key` keys the hash that personal values are shown as. `listener` is told of writes.
    `open_store` opens what rows are staged in, which Spark reaches by `store_options`.
    """

    catalog: Catalog
    session: "Callable[[], SparkSession]"
    lock_dir: Path
    masking_key: bytes
    listener: WriteListener = NOBODY_LISTENS
    page: Callable[[], str] = str
    """Where the web page of a running Spark on a cluster is; nothing of others."""
    open_store: Callable[[], ObjectStore] | None = None
    store_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def store(self) -> ObjectStore:
        """Where rows are staged for Spark: the bucket, or the home that the locks are in."""
        return self.open_store() if self.open_store else LocalObjectStore(self.lock_dir.parent)

    @property
    def spark(self) -> "SparkSession":
        """The Spark session, started on first use; it knows the catalog."""
        return self.session()

    def within(self, tables: Iterable[str]) -> "Engine":
        """Return an engine whose catalog lists the namespaces of some tables alone, see
        `Catalog.within`.
        """
        return replace(self, catalog=self.catalog.within(tables))

    def sql(self, statement: str, **parameters: Any) -> "DataFrame":
        """Run a Spark SQL statement; `parameters` are named ones (`:name`)."""
        return (
            self.spark.sql(statement, args=parameters)
            if parameters
            else self.spark.sql(statement)
        )
