"""A delivery that a person takes out again: known by its name and its content, out of bronze
and of the quarantines.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from lakehouse.errors import FileRejected, UsageError
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.commit.snapshot_properties import session_with
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.read.pinned_frames import read_main
from lakehouse.iceberg.read.withdrawn_deliveries import RejectedDelivery
from lakehouse.ingestion.archive import move_once, sha256_of
from lakehouse.ingestion.archive_names import (
    HASH_DIGITS,
    hashed_name,
    rejected_key,
)
from lakehouse.ingestion.collect import format_reason
from lakehouse.ingestion.delivery import RejectedFile
from lakehouse.ingestion.ingest import lock_feed
from lakehouse.ingestion.rejected_and_left import note_rejected
from lakehouse.ingestion.rewritten_files import KnownContent, RewrittenFiles
from lakehouse.settings import Settings
from lakehouse.storage.object_store import ObjectStore, StoredObject
from lakehouse.storage.rejected_files import BY_A_PERSON, reason_key
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed
from lakehouse.tables.quoting import in_utc, literal, without_zone

_HASH = re.compile(
    r"\.([0-9a-f]{12}|[0-9a-f]{64})(?:\.|$)(?!.*\.(?:[0-9a-f]{12}|[0-9a-f]{64})(?:\.|$))"
)
"""The part of the hash in an archived name: the last that looks like one."""


@dataclass(frozen=True)
class Came:
    """One content that came under a name: how many rows bronze has of it, when it came, and
    where it is archived.
    """

    sha256: str
    rows: int
    at: datetime
    archived: tuple[StoredObject, ...] = ()
    forms: frozenset[str] = frozenset()
    """The hashes of what else the file held since, rewritten without people who were erased."""

    @property
    def short_sha256(self) -> str:
        """So much of the hash as tells it from others, which is in the names of archived files
        too.
        """
        return self.sha256[:HASH_DIGITS]


class SeveralDeliveries(UsageError):
    """A name stands for several deliveries, `deliveries`, and nothing said which is meant."""

    def __init__(self, feed: Feed, source_file: str, deliveries: Sequence[Came]) -> None:
        self.deliveries = tuple(deliveries)
        super().__init__(
            f"{source_file!r} was delivered {len(deliveries)} times to {feed.name}; expected"
            " the hash of one delivery.",
            next_step="Pass the hash of the delivery to reject with --sha256.",
        )


@dataclass(frozen=True)
class Withdrawn:
    """How many rows of a delivery each table had, bronze first; and where its file is, None
    where no archive had it; `stays_in_inbox` where its feed leaves it there.
    """

    rows: Mapping[str, int]
    key: str | None
    stays_in_inbox: bool = False


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
    """Delete a delivery's rows from bronze and quarantines, then move its file from the
    archive to the rejected; one that its feed leaves in the inbox stays there, and is noted.

    What was computed of it follows with the next run of each table, see
    `lakehouse.iceberg.read.withdrawn_deliveries`. Killed in between, it is done again: rows
    that are gone are no error while the file is still in the archive.

    :param quarantines: where its rows are that were refused since.
    :param source_file: its key in the feed's inbox.
    :param sha256: how the hash of its content begins, where several contents came under that
        name.
    :raises SeveralDeliveries: when it may be more than one.
    :raises UsageError: when neither bronze nor the archive knows such a delivery, or no file
        can be called so.
    """
    _check_name(feed, source_file)
    store = open_store(settings)
    with lock_feed(feed, settings.home):
        known = deliveries(store, engine, feed, source_file)
        came = _select_delivery(feed, source_file, known, sha256)
        rejected = RejectedDelivery(source_file, came.sha256)
        summary = rejected.to_summary(by=by, why=why)
        stays = _is_left(store, feed, source_file, came)
        if stays:
            # Ahead of its rows: once these are gone, an ingest would land them again.
            note_rejected(feed, store, source_file, came.sha256)
        rows = {}
        for name in (feed.table, *quarantines):
            rows[name] = _delete_rows(engine, name, rejected, summary)
        key = None
        for archived in came.archived:
            key = _move_to_rejected(store, feed, source_file, archived, came, by, why)
        return Withdrawn(rows, key, stays)


def deliveries(store: ObjectStore, engine: Engine, feed: Feed, source_file: str) -> list[Came]:
    """Return each content that came under a name, as bronze or the archive knows it, oldest
    first.
    """
    archived: dict[str, list[StoredObject]] = {}
    forms: dict[str, frozenset[str]] = {}
    for item, known in _archived(store, feed, source_file):
        archived.setdefault(known.sha256, []).append(item)
        forms[known.sha256] = known.forms
    landed = _landed(engine, feed, source_file)
    came = []
    for sha256 in {**archived, **landed}:
        items = archived.get(sha256, [])
        rows, at = landed[sha256] if sha256 in landed else (0, items[0].modified_at)
        came.append(Came(sha256, rows, at, tuple(items), forms.get(sha256, frozenset())))
    return sorted(came, key=lambda delivery: delivery.at)


def _landed(engine: Engine, feed: Feed, source_file: str) -> dict[str, tuple[int, datetime]]:
    """Return, by hash, how many rows bronze has of each content that came under a name, and
    when they were landed.
    """
    from pyspark.sql.functions import expr

    if not engine.catalog.has(feed.table):
        return {}
    rows = read_main(engine, feed.table).where(f"_source_file = {literal(source_file)}")
    landed_at = without_zone("min(_ingested_at)", "timestamp")
    by_content = rows.groupBy("_source_sha256")
    counts = by_content.agg(expr("count(1)"), expr(landed_at)).collect()
    return {sha256: (count, in_utc(at)) for sha256, count, at in counts}


def _check_name(feed: Feed, source_file: str) -> None:
    # `a.csv/` and `./a.csv` would be the archived file of `a.csv`, and no row of it.
    parts = source_file.split("/")
    if not parts[-1] or {".", ".."} & {*parts}:
        raise UsageError(
            f"{source_file!r} is no name of a file in {feed.inbox}; expected one as"
            " `_source_file` has it, such as daily.csv or sub/daily.csv.",
            next_step=_names(feed),
        )


def _names(feed: Feed) -> str:
    return f'Names are those of: lakehouse sql "SELECT DISTINCT _source_file FROM {feed.table}"'


def _select_delivery(feed: Feed, source_file: str, known: Sequence[Came], sha256: str) -> Came:
    if not known:
        raise UsageError(
            f"{feed.table} has no row of a file {source_file!r}, and {feed.archive} no such"
            " file.",
            next_step=_names(feed),
        )
    begins = sha256.strip().lower()
    meant = []
    for came in known:
        if any(form.startswith(begins) for form in (came.sha256, *came.forms)):
            meant.append(came)
    if not meant:
        hashes = ", ".join(came.short_sha256 for came in known)
        raise UsageError(
            f"No delivery of {source_file!r} has a hash that begins with {sha256!r}; there are"
            f" {hashes}."
        )
    if len(meant) > 1:
        raise SeveralDeliveries(feed, source_file, meant)
    return meant[0]


def _delete_rows(
    engine: Engine, table: str, rejected: RejectedDelivery, summary: Mapping[str, str]
) -> int:
    """Delete the rows of a delivery from a table, and return how many it had."""
    if not engine.catalog.has(table):
        return 0
    with table_lock(engine, table):
        rows = read_main(engine, table).where(rejected.predicate).count()
        if rows:
            with session_with(engine.spark, summary):
                name = engine.catalog.sql_name(table)
                engine.sql(f"DELETE FROM {name} WHERE {rejected.deleted_by}")
    return rows


def _is_left(store: ObjectStore, feed: Feed, source_file: str, came: Came) -> bool:
    """Whether a delivery is what its feed left in the inbox."""
    key = f"{feed.inbox}{source_file}"
    if feed.after != "leave":
        return False
    try:
        sha256 = sha256_of(store, key)
    except FileNotFoundError:
        return False
    return RewrittenFiles(store, feed).find(key, sha256).sha256 == came.sha256


def _archived(
    store: ObjectStore, feed: Feed, source_file: str
) -> list[tuple[StoredObject, KnownContent]]:
    """Return what the archive has of a file, each with the delivery that it is: a part of the
    hash of that is in the name.
    """
    ledger = RewrittenFiles(store, feed)
    archived = []
    for item in store.objects(feed.archive):
        name = item.key.removeprefix(feed.archive).partition("/")[2]
        digits = _HASH.search(name)
        if digits and hashed_name(feed, source_file, digits[1], len(digits[1])) == name:
            archived.append((item, ledger.find(item.key, sha256_of(store, item.key))))
    return archived


def _move_to_rejected(
    store: ObjectStore,
    feed: Feed,
    source_file: str,
    archived: StoredObject,
    came: Came,
    by: str,
    why: str,
) -> str | None:
    reason = FileRejected(
        BY_A_PERSON, found=f"{json.dumps(why)}, said by {by}", expected="a delivery that may stay",
        next_step="Correct it and put it back into the inbox.",
    )  # fmt: skip

    def key(digits: int) -> str:
        return rejected_key(feed, source_file, came.sha256, digits)

    def explain(target: str) -> None:
        rejected = RejectedFile(
            feed.name, source_file, came.sha256, reason, datetime.now(UTC), target
        )
        store.write_text(reason_key(target), format_reason(rejected))

    return move_once(store, archived, {came.sha256, *came.forms}, key, before=explain)
