"""Decisions of users on deliveries: publish a blocked candidate, reject a landed file."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import dagster as dg

from lakehouse.errors import FileRejected, UsageError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.commit.publish_blocked import Overridden, publish_blocked
from lakehouse.iceberg.commit.snapshot_properties import session_with
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.pinned_frames import read_main
from lakehouse.iceberg.read.withdrawn_deliveries import RejectedDelivery
from lakehouse.iceberg.write.due_removals import finish_removals
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.ingestion.archive import move_to_rejected, sha256_of
from lakehouse.ingestion.archive_names import HASH_DIGITS, hashed_name
from lakehouse.ingestion.feed_lock import lock_feed
from lakehouse.ingestion.rewritten_files import KnownContent, RewrittenFiles
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.incident_reports import report_published
from lakehouse.orchestration.metadata_keys import OverrideMetadata, WriteMetadata
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.settings import Settings
from lakehouse.storage.object_store import ObjectStore, StoredObject
from lakehouse.storage.rejected_files import BY_A_PERSON, RejectedFile
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed
from lakehouse.tables.quoting import in_utc, literal, shown, without_zone
from lakehouse.tables.table import IcebergTable


def publish(
    settings: Settings, engine: Engine, table: IcebergTable, run_id: str, *, by: str, why: str
) -> Overridden:
    """Publish a run's candidate despite its failed rules; the table and Dagster record the user
    and the reason. If a killed command published it before, complete the remaining steps.

    :raises UsageError: if there is no such candidate, or the table was written since.
    """
    published = publish_blocked(engine, table, run_id, by=by, why=why)
    by, why = published.by, published.why
    override = OverrideMetadata(by=by, why=why, run_id=published.run_id)
    written = WriteMetadata(snapshot_id=published.snapshot_id, row_count=published.rows)
    publication = dg.AssetMaterialization(
        asset_key(table.name),
        description=f"Published against its rules by {by}: {why}",
        metadata=override.to_metadata() | written.to_metadata(),
        tags={"dagster/data_version": str(published.snapshot_id)},
    )
    with open_instance(settings) as instance:
        if not (published.is_again and _is_recorded(instance, published)):
            instance.report_runless_asset_event(publication)
    how = (
        f"{table.name} was published against its rules by {by}, as of run"
        f" {published.run_id[:8]}: {why}"
    )
    report_published(settings, table.name, published.run_id, how)
    with table_lock(engine, table.name):
        finish_removals(engine, table, read_history(engine, table.name), write)
    return published


def _is_recorded(instance: dg.DagsterInstance, published: Overridden) -> bool:
    event = instance.get_latest_materialization_event(asset_key(published.table))
    known = event.asset_materialization if event else None
    if known is None:
        return False
    return OverrideMetadata.from_metadata(known.metadata).run_id == published.run_id


_HASH = re.compile(
    r"\.([0-9a-f]{12}|[0-9a-f]{64})(?:\.|$)(?!.*\.(?:[0-9a-f]{12}|[0-9a-f]{64})(?:\.|$))"
)
"""The hash in an archived name: the last part that looks like one."""


@dataclass(frozen=True)
class DeliveredContent:
    """A content delivered under a name: its rows in bronze, arrival time and archived files."""

    sha256: str
    rows: int
    at: datetime
    archived: tuple[StoredObject, ...] = ()
    forms: frozenset[str] = frozenset()
    """The hashes of its content after rewrites without erased data subjects."""

    @property
    def short_sha256(self) -> str:
        return self.sha256[:HASH_DIGITS]


@dataclass(frozen=True)
class Withdrawn:
    """A delivery's rows by table, bronze first, and the rejected file's key if it was archived."""

    rows: Mapping[str, int]
    key: str | None


def reject(
    settings: Settings,
    engine: Engine,
    feed: Feed,
    quarantines: Iterable[str],
    source_file: str,
    *,
    by: str,
    why: str,
    sha256: str = "",
) -> Withdrawn:
    """Delete a delivery's rows from bronze and quarantines, then move its archived file to the
    rejected files. Downstream tables follow with their next run. After a kill it can be
    repeated.
    """
    _check_name(feed, source_file)
    store = open_store(settings)
    with lock_feed(feed, settings.home):
        _require_not_left(store, feed, source_file)
        known = deliveries(store, engine, feed, source_file)
        content = _select_delivery(feed, source_file, known, sha256)
        rejected = RejectedDelivery(source_file, content.sha256)
        summary = rejected.to_summary(by=by, why=why)
        rows = {}
        for name in (feed.table, *quarantines):
            rows[name] = _delete_rows(engine, name, rejected, summary)
        reason = FileRejected(
            BY_A_PERSON,
            found=f"{json.dumps(why)}, said by {by}",
            expected="a delivery that may stay",
            next_step="Correct it and put it back into the inbox.",
        )
        file = RejectedFile(feed.name, source_file, content.sha256, reason, datetime.now(UTC))
        forms, key = {content.sha256, *content.forms}, None
        for archived in content.archived:
            moved = move_to_rejected(store, feed, archived, forms, file)
            key = moved.key if moved else None
        return Withdrawn(rows, key)


def deliveries(
    store: ObjectStore, engine: Engine, feed: Feed, source_file: str
) -> list[DeliveredContent]:
    """Return each content delivered under a name, from bronze and the archive, oldest first."""
    archived: dict[str, list[StoredObject]] = {}
    forms: dict[str, frozenset[str]] = {}
    for item, known in _archived(store, feed, source_file):
        archived.setdefault(known.sha256, []).append(item)
        forms[known.sha256] = known.forms
    landed = _landed(engine, feed, source_file)
    contents = []
    for sha256 in {**archived, **landed}:
        items = archived.get(sha256, [])
        rows, at = landed[sha256] if sha256 in landed else (0, items[0].modified_at)
        contents.append(
            DeliveredContent(sha256, rows, at, tuple(items), forms.get(sha256, frozenset()))
        )
    return sorted(contents, key=lambda delivery: delivery.at)


def _landed(engine: Engine, feed: Feed, source_file: str) -> dict[str, tuple[int, datetime]]:
    """Return the row count and landing time in bronze of each content of a name, by hash."""
    from pyspark.sql.functions import expr

    if not engine.catalog.has(feed.table):
        return {}
    rows = read_main(engine, feed.table).where(f"_source_file = {literal(source_file)}")
    landed_at = without_zone("min(_ingested_at)", "timestamp")
    by_content = rows.groupBy("_source_sha256")
    counts = by_content.agg(expr("count(1)"), expr(landed_at)).collect()
    return {sha256: (count, in_utc(at)) for sha256, count, at in counts}


def _check_name(feed: Feed, source_file: str) -> None:
    # `a.csv/` and `./a.csv` would match the archived file of `a.csv` but none of its rows.
    parts = source_file.split("/")
    if not parts[-1] or {".", ".."} & {*parts}:
        raise UsageError(
            f"{source_file!r} is no name of a file in {feed.inbox}; expected one as"
            " `_source_file` has it, such as daily.csv or sub/daily.csv.",
            next_step=_names(feed),
        )


def _names(feed: Feed) -> str:
    return f'Names are those of: lakehouse sql "SELECT DISTINCT _source_file FROM {feed.table}"'


def _select_delivery(
    feed: Feed, source_file: str, known: Sequence[DeliveredContent], sha256: str
) -> DeliveredContent:
    if not known:
        raise UsageError(
            f"{feed.table} has no row of a file {source_file!r}, and {feed.archive} no such"
            " file.",
            next_step=_names(feed),
        )
    prefix = sha256.strip().lower()
    meant = []
    for content in known:
        if any(form.startswith(prefix) for form in (content.sha256, *content.forms)):
            meant.append(content)
    if len(meant) != 1:
        listed = "; ".join(
            f"{content.short_sha256} of {content.at:%Y-%m-%d %H:%MZ} with {content.rows:,} rows"
            for content in known[-20:]
        )
        raise UsageError(
            f"{len(meant)} deliveries of {source_file!r} have a hash that starts with"
            f" {sha256!r}; expected one of {listed}.",
            next_step="Pass the start of its hash with --sha256.",
        )
    return meant[0]


def _delete_rows(
    engine: Engine, table: str, rejected: RejectedDelivery, summary: Mapping[str, str]
) -> int:
    if not engine.catalog.has(table):
        return 0
    with table_lock(engine, table):
        rows = read_main(engine, table).where(rejected.predicate).count()
        if rows:
            with session_with(engine.spark, summary):
                name = engine.catalog.sql_name(table)
                engine.sql(f"DELETE FROM {name} WHERE {rejected.deleted_by}")
    return rows


def _require_not_left(store: ObjectStore, feed: Feed, source_file: str) -> None:
    """Check that the file is not in the inbox, where a later ingest could land it again."""
    key = f"{feed.inbox}{source_file}"
    if feed.after == "leave" and store.exists(key):
        raise UsageError(
            f"Feed {feed.name} leaves {shown(store.uri(key))} in the inbox, so an ingest could"
            " land its rows again; expected it to be removed first.",
            next_step="Move the file out of the inbox, and run this again.",
        )


def _archived(
    store: ObjectStore, feed: Feed, source_file: str
) -> list[tuple[StoredObject, KnownContent]]:
    """Return the archived files of a name, each with its delivery."""
    ledger = RewrittenFiles(store, feed)
    archived = []
    for item in store.objects(feed.archive):
        name = item.key.removeprefix(feed.archive).partition("/")[2]
        digits = _HASH.search(name)
        if digits and hashed_name(feed, source_file, digits[1], len(digits[1])) == name:
            archived.append((item, ledger.find(item.key, sha256_of(store, item.key))))
    return archived
