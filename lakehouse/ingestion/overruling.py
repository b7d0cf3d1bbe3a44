"""What a person decides where a rule holds a table back: publish all the same, or take a file's rows out again."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import dagster as dg

from lakehouse.errors import FileRejected, UsageError
from lakehouse.iceberg.engine import Engine
from lakehouse.iceberg.quoting import literal
from lakehouse.iceberg.read import read_main
from lakehouse.iceberg.stamp import PREFIX
from lakehouse.iceberg.table import IcebergTable
from lakehouse.iceberg.writing.lock import table_lock
from lakehouse.iceberg.writing.override import Overridden, publish_refused
from lakehouse.iceberg.writing.stage import with_properties
from lakehouse.ingestion.archive import put_away, sha256_of
from lakehouse.ingestion.delivery import RejectedFile
from lakehouse.ingestion.feed import Feed
from lakehouse.ingestion.ingest import exclusive
from lakehouse.ingestion.names import hashed_name, rejected_key
from lakehouse.ingestion.take import reason_text
from lakehouse.resources.instance import open_instance
from lakehouse.resources.keys import asset_key
from lakehouse.resources.object_store import ObjectStore, StoredObject
from lakehouse.resources.rejections import BY_A_PERSON, reason_key
from lakehouse.resources.stores import open_store
from lakehouse.settings import Settings

_HASH = re.compile(r"\.([0-9a-f]{12}|[0-9a-f]{64})(?:\.|$)(?!.*\.(?:[0-9a-f]{12}|[0-9a-f]{64})(?:\.|$))")
"""The part of the hash in an archived name: the last that looks like one."""


@dataclass(frozen=True)
class TakenOut:
    """How many rows of a file each table had, bronze first; and where the file is, None where no archive had it."""

    rows: Mapping[str, int]
    key: str | None


def publish(settings: Settings, engine: Engine, table: IcebergTable, run_id: str, *, by: str, why: str) -> Overridden:
    """Publish the candidate of a run that its rules refused; the table and Dagster both say who wanted it, and why.

    :raises UsageError: when there is no such candidate, or when the table was written since.
    """
    done = publish_refused(engine, table, run_id, by=by, why=why)
    said = dg.AssetMaterialization(
        asset_key(table.name),
        description=f"Published against its rules by {by}: {why}",
        metadata={
            "overridden_by": by,
            "overridden_for": why,
            "refused_run": done.run_id,
            "iceberg/snapshot_id": str(done.snapshot_id),
            "dagster/row_count": done.rows,
        },
        tags={"dagster/data_version": str(done.snapshot_id)},
    )
    with open_instance(settings) as instance:
        instance.report_runless_asset_event(said)
    return done


def reject(
    settings: Settings,
    engine: Engine,
    feed: Feed,
    quarantines: Iterable[str],
    source_file: str,
    *,
    by: str,
    why: str,
) -> TakenOut:
    """Take the rows of a file out of bronze and of quarantines, then move it from the archive to the rejected ones.

    Killed in between, it is done again: rows that are gone are no error while the file is still in the archive.

    :param quarantines: where its rows are that were refused since.
    :param source_file: its key in the feed's inbox.
    :raises UsageError: when neither bronze nor the archive knows such a file.
    """
    store = open_store(settings)
    said = {f"{PREFIX}rejected-file": source_file, f"{PREFIX}rejected-by": by, f"{PREFIX}rejected-for": why}
    with exclusive(feed, settings.home):
        archived = _archived(store, feed, source_file)
        rows = {feed.table: _take_out(engine, feed.table, source_file, said)}
        if not any(rows.values()) and not archived:
            raise UsageError(
                f"{feed.table} has no row of a file {source_file!r}, and {feed.archive} no such file.",
                next_step=f'Names are those of: lakehouse sql "SELECT DISTINCT _source_file FROM {feed.table}"',
            )
        rows |= {name: _take_out(engine, name, source_file, said) for name in quarantines}
        keys = [_put_away(store, feed, source_file, found, sha256, by, why) for found, sha256 in archived]
        return TakenOut(rows, keys[-1] if keys else None)


def _take_out(engine: Engine, table: str, source_file: str, said: Mapping[str, str]) -> int:
    """Delete the rows of a file from a table, and return how many it had."""
    if not engine.catalog.has(table):
        return 0
    its = f"_source_file = {literal(source_file)}"
    with table_lock(engine, table):
        rows = read_main(engine, table).where(its).count()
        if rows:
            with with_properties(engine.spark, said):
                engine.sql(f"DELETE FROM {engine.catalog.sql_name(table)} WHERE {its}")
    return rows


def _archived(store: ObjectStore, feed: Feed, source_file: str) -> list[tuple[StoredObject, str]]:
    """Return what the archive has of a file, each content with its hash: a part of that is in the name."""
    found = ((item, item.key.removeprefix(feed.archive).partition("/")[2]) for item in store.objects(feed.archive))
    named = ((item, name, _HASH.search(name)) for item, name in found)
    its = [item for item, name, part in named if part and hashed_name(feed, source_file, part[1]) == name]
    return [(item, sha256_of(store, item.key)) for item in its]


def _put_away(
    store: ObjectStore, feed: Feed, source_file: str, found: StoredObject, sha256: str, by: str, why: str
) -> str | None:
    reason = FileRejected(
        BY_A_PERSON, found=f"{json.dumps(why)}, said by {by}", expected="a delivery that may stay",
        next_step="Correct it and put it back into the inbox.",
    )  # fmt: skip

    def key(digits: int) -> str:
        return rejected_key(feed, source_file, sha256, digits)

    def explain(target: str) -> None:
        rejected = RejectedFile(feed.name, source_file, sha256, reason, datetime.now(UTC), target)
        store.write_text(reason_key(target), reason_text(rejected))

    return put_away(store, found, sha256, key, before=explain)
