"""The life of a delivery: collect, publish in bronze, archive; exactly once, even if killed."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.errors import FilesUnsupported, LakehouseError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.erasure.erase_again import erase_again
from lakehouse.iceberg.erasure.suppression_list import NO_SUPPRESSION, SuppressionList
from lakehouse.iceberg.evolve import planning
from lakehouse.iceberg.metadata.scanned_batches import scanned_batches
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_result import Outcome, Refused, Unchanged
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.ingestion.archive import archive_files
from lakehouse.ingestion.collect import collect_files
from lakehouse.ingestion.collected_files import Delivery
from lakehouse.ingestion.feed_lock import lock_feed
from lakehouse.ingestion.staged_frame import is_shared, plan_landing_table, read_staged_rows
from lakehouse.ingestion.staging.executor_reading import ExecutorReading
from lakehouse.ingestion.staging.staged_rows import BucketStaging
from lakehouse.storage.object_store import ObjectStore
from lakehouse.tables.feed import Feed
from lakehouse.tables.quoting import shell_word, shown
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression
    from pyspark.sql import DataFrame, SparkSession


_MOST_FILES = 20
_COLUMNS = ("_source_file", "_source_sha256", "_ingested_at")


def landed_names(
    engine: Engine, table: str, hashes: Collection[str]
) -> dict[str, dict[str, datetime]]:
    """Return the names and ingestion times of landed files by the SHA-256 of their content."""
    import pyarrow as pa
    from pyiceberg.expressions import In

    names: dict[str, dict[str, datetime]] = {}
    if not hashes or not engine.catalog.has(table):
        return names
    # mypy sees pydantic's fields instead of PyIceberg's constructor.
    of_hashes = In("_source_sha256", set(hashes))  # type: ignore[call-arg,arg-type]
    for batch in _landed(engine, table, of_hashes):
        landings = pa.table(batch).group_by(list(_COLUMNS)).aggregate([])
        for row in landings.to_pylist():
            known = names.setdefault(row["_source_sha256"], {})
            name, at = row["_source_file"], row["_ingested_at"]
            known[name] = max(at, known.get(name, at))
    return names


def has_newer_content(
    engine: Engine, table: str, source_file: str, sha256: str, landed_at: datetime
) -> bool:
    """Whether other content has landed under a file name since."""
    from pyiceberg.expressions import And, EqualTo, GreaterThan, NotEqualTo

    # As above, mypy does not see PyIceberg's constructors.
    is_named = EqualTo("_source_file", source_file)  # type: ignore[call-arg,arg-type]
    is_another = NotEqualTo("_source_sha256", sha256)  # type: ignore[call-arg,arg-type]
    is_newer = GreaterThan("_ingested_at", landed_at.isoformat())  # type: ignore[call-arg,arg-type]
    found = _landed(engine, table, And(is_named, is_another, is_newer))
    return any(batch.num_rows for batch in found)


def _landed(
    engine: Engine, table: str, row_filter: "BooleanExpression"
) -> "Iterator[pa.RecordBatch]":
    """Yield the source columns of some rows of bronze.

    Nothing if more than a few files must be read, or only Spark reads one: it is only a hint.
    """
    loaded = engine.catalog.load(table)
    scan = loaded.scan(row_filter, selected_fields=_COLUMNS)
    if len(list(scan.plan_files())) <= _MOST_FILES:
        with suppress(FilesUnsupported):
            yield from scanned_batches(loaded, scan)


def repeated_content(engine: Engine, table: str, delivery: Delivery) -> list[str]:
    """Return a warning per file whose rows landed under another name or before newer content."""
    files = [file for file in delivery.files if file.rows]
    landed = landed_names(engine, table, {file.sha256 for file in files})
    feed, started_at = delivery.ingest.feed.name, delivery.ingest.started_at
    warnings = []
    for file in files:
        known = landed.setdefault(file.sha256, {})
        name = file.source_file
        if known and name not in known:
            warnings.append(
                f"{shown(name)} has the content of {shown(min(known))}, which landed before it:"
                " its rows are there twice. If that is not meant, `lakehouse reject"
                f" {shell_word(name)} --feed {feed} --why …` takes them out."
            )
        elif known and has_newer_content(engine, table, name, file.sha256, known[name]):
            warnings.append(
                f"{shown(name)} has the content of an earlier delivery of that name, and newer"
                " content came since: its rows do not land again. If they are to count, deliver"
                f" it under another name, or take the newer out: `lakehouse reject"
                f" {shell_word(name)} --feed {feed} --why …`."
            )
        known.setdefault(name, started_at)
    return warnings


def _rows_to_land(
    spark: "SparkSession",
    delivery: Delivery,
    added: Sequence[str],
    compute: "Callable[[DataFrame], DataFrame]",
) -> "DataFrame":
    """Return the staged rows for bronze, after a check that none is missing.

    :param added: undeclared columns that bronze got from earlier files.
    """
    staged = read_staged_rows(spark, delivery, added=added)
    if is_shared(delivery):
        found, ingest = staged.count(), delivery.ingest
        if found != delivery.rows:
            raise LakehouseError(
                f"Spark reads {found:,} rows of feed {ingest.feed.name} in {ingest.rows.uri};"
                f" expected the {delivery.rows:,} that were staged there.",
                next_step="Run the ingest again; the files wait in the inbox.",
            )
    return compute(staged)


@dataclass(frozen=True)
class Landing:
    """The result of one ingest: collected files, write outcome and archive keys.

    If bronze is blocked, nothing is archived and the files wait in the inbox.
    """

    delivery: Delivery
    outcome: Outcome
    archived: Sequence[str]
    repeated: Sequence[str] = ()
    """One line per file whose content landed before under another name, or under the same name
    before newer content.
    """

    @property
    def warnings(self) -> list[str]:
        return [*self.delivery.warnings, *self.repeated]


def land(
    engine: Engine,
    feed: Feed,
    table: IcebergTable,
    store: ObjectStore,
    home: Path,
    run: Run | None = None,
    *,
    compute: "Callable[[DataFrame], DataFrame]" = lambda delivered: delivered,
    suppression: SuppressionList = NO_SUPPRESSION,
    bucket: BucketStaging | None = None,
    executors: ExecutorReading | None = None,
) -> Landing:
    """Land the files that wait in a feed's inbox with one append to its bronze table, and
    archive them.

    If no file waits, only the table is created or evolved; Spark is not started if it is as
    declared.

    :param compute: adds the `extra` columns of the table to the delivered rows.
    :param suppression: erased data subjects: their rows from before the erasure do not land.
    :param bucket: stages rows in a bucket instead of the home.
    :param executors: read the files instead of this process if there are enough of them.
    :raises TableBusy: when another ingest of the feed goes on for longer than an hour.
    """
    with lock_feed(feed, home, bucket=bucket) as ingest:
        delivery = collect_files(store, ingest, suppression=suppression, executors=executors)
        erase_again(engine, table, suppression.filter())
        repeated = repeated_content(engine, table.name, delivery)
        outcome = _publish(engine, feed, table, delivery, run or Run(), compute)
        archived = () if isinstance(outcome, Refused) else archive_files(delivery, store)
        return Landing(delivery, outcome, archived, repeated)


def _publish(
    engine: Engine,
    feed: Feed,
    table: IcebergTable,
    delivery: Delivery,
    run: Run,
    compute: "Callable[[DataFrame], DataFrame]",
) -> Outcome:
    table, added = plan_landing_table(feed, table, engine.catalog, delivery.added_columns)
    if not delivery.files:
        with table_lock(engine, table.name):
            planning.ensure(engine, table, run.run_id)
        main = read_history(engine, table.name).main
        return Unchanged(table.name, "", main.snapshot_id if main else None)

    return write(
        engine,
        table,
        lambda: _rows_to_land(engine.spark, delivery, added, compute),
        run=run,
        arriving=delivery.arriving,
    )
