"""Account for every delivered row of a table with versions: current, quarantined or superseded."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dagster as dg

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.suppression_list import (
    NO_SUPPRESSION,
    RowFilter,
    SuppressionList,
)
from lakehouse.iceberg.frames.broadcast_joins import BROADCAST_KEY_LIMIT, same_key, with_keys
from lakehouse.iceberg.metadata.commit_record import CommitProperties
from lakehouse.iceberg.metadata.snapshots import History, Snapshot, read_history
from lakehouse.iceberg.read.cleared_rows import read_cleared
from lakehouse.iceberg.read.pinned_frames import read, read_main
from lakehouse.iceberg.read.pinned_inputs import pin_since
from lakehouse.iceberg.read.version_keys import (
    declared_versions,
    delivered_name,
    is_newer_sql,
    key_terms,
    order_sql,
    typed_sql,
)
from lakehouse.iceberg.rules.failing_row_samples import sample_of
from lakehouse.iceberg.values.value_ranges import bound
from lakehouse.iceberg.values.write_context import Partitions
from lakehouse.iceberg.values.write_result import Pin
from lakehouse.iceberg.write.kept_rows import keeping_rows
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.blocked_tables import note_check_failed
from lakehouse.orchestration.metadata_keys import CheckMetadata
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


CLEARED = "cleared"
"""Outcome of a missing row that a user cleared; reported only if there are any."""
ERASED = "erased"
"""Outcome of a missing row of an erased data subject; reported only if there are any."""


def may_have_erased(engine: Engine, source: Pin, suppressed: RowFilter) -> bool:
    """Whether rows that were read of a source can belong to erased people; reads metadata only."""
    return suppressed.is_active or _was_erased_since(engine, source)


def without_erased(
    engine: Engine, source: Pin, rows: "DataFrame", suppressed: RowFilter
) -> "DataFrame":
    """Return a pinned source's rows without those erased since and those of erased data
    subjects.

    :param rows: rows with the columns of the source, and any others.
    """
    if _was_erased_since(engine, source):
        names = list(SOURCE_COLUMNS)
        now = read_main(engine, source.table).select(*names)
        rows = rows.join(now, names, "left_semi").select(*rows.columns)
    table = suppressed.suppression.tables.get(source.table)
    return rows if table is None else suppressed.split(table, rows).rows


def _was_erased_since(engine: Engine, source: Pin) -> bool:
    history = read_history(engine, source.table)
    return source.snapshot_id is not None and _has_erasure_since(history, source.snapshot_id)


def _has_erasure_since(source: History, snapshot_id: int) -> bool:
    main = source.main
    since = source.between(snapshot_id, main.snapshot_id) if main else None
    return any(snapshot.is_erasure for snapshot in (source.line if since is None else since))


OUTCOMES = ("clean", "quarantined", "superseded", "pending", "lost")
"""Outcomes of a row. For a pending row, another version arrived that is not computed yet."""
_IS = "struct(xxhash64(_source_file, _source_sha256) AS file, _source_row AS row) AS __is"
"""A compact row identity: a hash of its file, and its row number."""
_ANYWHERE = "true"
_NEWEST = "__newest_"
"""Prefix of the delivered columns that order versions."""


@dataclass(frozen=True)
class Accounted:
    """The number of source rows by outcome, and a sample of lost rows."""

    source_snapshot_id: int | None
    rows: dict[str, int]
    sample: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Increment:
    """An incremental run: it read the source's rows after the snapshot `since`, and changed the
    target's snapshot `target_before`.
    """

    since: int
    target_before: int | None


def account(
    engine: Engine,
    source: IcebergTable,
    target: IcebergTable,
    snapshot_id: int | None,
    where: str | None = None,
    *,
    first: str | None = None,
    computed_id: int | None = None,
    increment: Increment | None = None,
    suppression: SuppressionList = NO_SUPPRESSION,
) -> Accounted:
    """Find each source row in the target, in its quarantine, or superseded by another version.

    :param snapshot_id: the source snapshot; None if the target was not computed yet.
    :param where: a SQL predicate on the source rows; default: all rows.
    :param first: a SQL predicate on the target rows that contain most matches. A second query
        searches the entire target for the remaining rows.
    :param computed_id: the source snapshot that the entire target is computed from; later rows
        may be pending.
    :param increment: for an incremental run, which also accounts for existing rows that it
        removed.
    :param suppression: erased data subjects: their earlier rows are excluded on purpose.
    """
    if snapshot_id is None:
        return Accounted(None, dict.fromkeys(OUTCOMES, 0))
    pin = Pin(source.name, snapshot_id)
    if increment is not None:
        pin = pin_since(read_history(engine, source.name), increment.since, snapshot_id)
    rows = _row_keys(target, read(engine, pin, where))
    if increment is not None and increment.target_before is not None:
        removed = _removed_rows(engine, target, increment.target_before, first)
        rows = _typed(target, rows).unionByName(_typed(target, removed))
    pending = _arrived_since(engine, source, computed_id)
    outcomes = _with_outcome(
        engine, target, rows, within=first or _ANYWHERE, pending=None if first else pending
    )
    counts = _count(outcomes)
    sample: tuple[Any, ...] = ()
    with keeping_rows(engine) as kept:
        if first and counts["lost"]:
            rest = kept.keep(outcomes.where("__outcome = 'lost'").drop("__outcome"), eager=True)
            unresolved_rows = counts.pop("lost")
            outcomes = _with_outcome(
                engine, target, rest, pending=pending, rest=unresolved_rows
            )
            counts += _count(outcomes)
        if counts["lost"]:
            lost_rows = outcomes.where("__outcome = 'lost'")
            not_erased = _without_erased(
                engine, Pin(source.name, snapshot_id), lost_rows, suppression.filter()
            )
            if not_erased is not None:
                lost_rows = not_erased
                counts[ERASED] = counts["lost"] - lost_rows.count()
                counts["lost"] -= counts[ERASED]
            if counts["lost"]:
                sample = sample_of(engine, source, lost_rows.select(*SOURCE_COLUMNS))
    reported = [*OUTCOMES, *(outcome for outcome in (CLEARED, ERASED) if counts[outcome])]
    return Accounted(snapshot_id, {outcome: counts[outcome] for outcome in reported}, sample)


def _without_erased(
    engine: Engine, source: Pin, lost_rows: "DataFrame", suppressed: RowFilter
) -> "DataFrame | None":
    """Return the lost rows that do not belong to erased data subjects; None without an erasure."""
    if not may_have_erased(engine, source, suppressed):
        return None
    rows = read(engine, source).selectExpr("*", _IS)
    matching = rows.join(lost_rows.select("__is"), "__is", "left_semi")
    kept = without_erased(engine, source, matching, suppressed)
    return lost_rows.join(kept.select("__is"), "__is", "left_semi")


def _removed_rows(
    engine: Engine, target: IcebergTable, before_id: int, within: str | None
) -> "DataFrame":
    current = read_main(engine, target.name).where(within or "true").selectExpr(_IS)
    before = _row_keys(target, read(engine, Pin(target.name, before_id), within))
    return before.join(current, "__is", "left_anti")


def _typed(target: IcebergTable, rows: "DataFrame") -> "DataFrame":
    from pyspark.sql.functions import expr

    return rows.withColumns({name: expr(sql) for name, sql in _newest(target, rows).items()})


def _count(outcomes: "DataFrame") -> Counter[str]:
    rows = outcomes.groupBy("__outcome").count().collect()
    return Counter({row["__outcome"]: row["count"] for row in rows})


def _arrived_since(
    engine: Engine, source: IcebergTable, since: int | None
) -> "DataFrame | None":
    """Return the rows that arrived since the target was last computed in full; None without."""
    history = read_history(engine, source.name)
    if history.main is None or history.main.snapshot_id == since:
        return None
    return read(engine, pin_since(history, since, history.main.snapshot_id))


def _row_keys(target: IcebergTable, delivered: "DataFrame") -> "DataFrame":
    """Return the columns by which delivered rows are searched in the target."""
    versions = declared_versions(target)
    # Source columns may also be version columns.
    source = [name for name in SOURCE_COLUMNS if name not in versions.of]
    newest = []
    for name in versions.newest:
        known = delivered_name(target, name, delivered.columns)
        # The function may derive the column from others; then its value is unknown here.
        value = identifier(known) if known in delivered.columns else "CAST(NULL AS string)"
        newest.append(f"{value} AS {identifier(_NEWEST + name)}")
    return delivered.selectExpr(*source, *key_terms(target, delivered), *newest, _IS)


def _newest(target: IcebergTable, rows: "DataFrame") -> dict[str, str]:
    """Return SQL for the version columns, cast to the target's types, by column name."""
    types = dict(rows.dtypes)
    newest = {}
    for name in declared_versions(target).newest:
        delivered = _NEWEST + name
        newest[delivered] = typed_sql(target, name, identifier(delivered), types[delivered])
    return newest


def _existing(engine: Engine, target: IcebergTable, within: str) -> "DataFrame":
    versions = declared_versions(target)
    order = order_sql({_NEWEST + name: identifier(name) for name in versions.newest})
    columns = [*map(identifier, versions.of), f"{order} AS __existing", _IS]
    return read_main(engine, target.name).where(within).selectExpr(*columns)


def _with_outcome(
    engine: Engine,
    target: IcebergTable,
    rows: "DataFrame",
    *,
    within: str = _ANYWHERE,
    pending: "DataFrame | None" = None,
    rest: int = 0,
) -> "DataFrame":
    """Return rows of `_row_keys` with their outcome: one of `OUTCOMES`, or `CLEARED`.

    A row is searched by its key: the target contains the row itself or the version that
    displaced it.

    :param within: a SQL predicate on the target rows to search.
    :param rest: the number of these rows, if they are known not to be in the quarantine.
    """
    from pyspark.sql.functions import expr

    assert target.quarantine is not None
    versions = declared_versions(target)
    keys = list(map(identifier, versions.of))
    existing = _existing(engine, target, within)
    # A row may be quarantined several times, but counts once.
    quarantined = read_main(engine, target.quarantine.name).selectExpr(
        _IS, "true AS __quarantined"
    )
    if not read_history(engine, target.quarantine.name).is_empty:
        quarantined = quarantined.distinct()
    if rest:
        quarantined = quarantined.where("false")
    if 0 < rest < BROADCAST_KEY_LIMIT:
        # The preserved side of an outer join cannot be broadcast, so the other side is reduced.
        existing = with_keys(existing, rows.selectExpr(*keys), versions.of, rest)
    joined = rows.alias("s").join(existing.alias("v"), same_key(versions.of, "s", "v"), "left")
    joined = joined.join(quarantined.alias("q"), expr("s.__is = q.__is"), "left")
    when_pending = when_cleared = ""
    if pending is not None:
        waiting = pending.selectExpr(*key_terms(target, pending)).distinct()
        joined = joined.join(
            waiting.selectExpr("*", "true AS __waits").alias("w"),
            same_key(versions.of, "s", "w"),
            "left",
        )
        when_pending = "WHEN __waits THEN 'pending'"
    # The second search may find the remaining rows elsewhere.
    cleared = read_cleared(engine, target) if within == _ANYWHERE else None
    if cleared is not None:
        known = cleared.selectExpr(_IS, "true AS __cleared").distinct().alias("c")
        joined = joined.join(known, expr("s.__is = c.__is"), "left")
        when_cleared = "WHEN __cleared THEN 'cleared'"
    # Cast late, for few rows: casting timestamps is the most expensive part.
    newest = _newest(target, rows)
    is_newer = is_newer_sql(newest, "__existing")
    return joined.selectExpr(
        "s.*",
        "CASE WHEN __quarantined THEN 'quarantined' WHEN v.__is = s.__is THEN 'clean' "
        f"WHEN __existing IS NOT NULL AND NOT {is_newer} THEN 'superseded' "
        f"{when_cleared} {when_pending} ELSE 'lost' END AS __outcome",
    )


NAME = "every_row_is_accounted_for"
Evaluate = Callable[
    [Engine, History | None, Snapshot | None, SuppressionList], dg.AssetCheckResult
]
"""Parameters: the table's history if any, the run's snapshot if any, and erased people."""


def accounted_check(
    source: IcebergTable, target: IcebergTable, *, by: str
) -> dg.AssetChecksDefinition:
    """Make the check that each source row is current in the target, quarantined or superseded.

    The target overwrites partitions, and has versions and a quarantine. The check covers the
    source rows of the run's partitions; in an incremental run, new and removed rows; without a
    run, everything that the target was computed from.

    :param by: the source column that determines the target's partitions.
    """
    target_by = target.overwritten_by
    assert target_by is not None

    def evaluate(
        engine: Engine,
        history: History | None,
        snapshot: Snapshot | None,
        suppression: SuppressionList,
    ) -> dg.AssetCheckResult:
        commit = snapshot.commit if snapshot else None
        if history is None or commit is None or not commit.read:
            computed_id = history.watermark(source.name) if history else None
            state_id = kept_state(engine, source.name, computed_id)
            accounted = account(
                engine,
                source,
                target,
                state_id,
                computed_id=computed_id,
                suppression=suppression,
            )
            return _accounted_result(accounted, commit.partitions if commit else ())
        partitions = partitions_of(commit)
        accounted = account(
            engine,
            source,
            target,
            commit.read.get(source.name),
            partitions.predicate(by),
            first=partitions.predicate(target_by),
            computed_id=commit.inputs.get(source.name),
            increment=_increment(history, commit, source.name),
            suppression=suppression,
        )
        return _accounted_result(accounted, commit.partitions)

    return rows_check(
        target,
        f"Each row of {source.name} counts in {target.name}, is quarantined, or was"
        " superseded.",
        evaluate,
    )


def kept_state(engine: Engine, source: str, snapshot_id: int | None) -> int | None:
    """Return the source snapshot to check: the one that the target was computed from. If it
    expired, for example after an erasure, return the current one, which the next run reads in
    full.
    """
    if snapshot_id is None:
        return None
    history = read_history(engine, source)
    if snapshot_id in history.snapshots or history.main is None:
        return snapshot_id
    return history.main.snapshot_id


def rows_check(
    target: IcebergTable, description: str, evaluate: Evaluate
) -> dg.AssetChecksDefinition:
    """Make the check that accounts for the rows of a table; a failure blocks the table."""

    @dg.asset_check(
        asset=asset_key(target.name),
        name=NAME,
        description=description,
        blocking=True,
        required_resource_keys={"io_manager"},
    )
    def check(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        io = context.resources.io_manager
        engine = io.engine
        run_id = context.run.run_id
        history = read_history(engine, target.name) if engine.catalog.has(target.name) else None
        result = evaluate(engine, history, _snapshot_of_run(history, run_id), io.suppression)
        if not result.passed:
            note_check_failed(context.instance, run_id, target.name)
        return result

    return check


def rows_result(
    rows: Mapping[str, int],
    failed: str,
    predicate: str,
    description: str,
    *,
    partitions: tuple[str, ...] = (),
    sample: Sequence[Any] = (),
    **metadata: Any,
) -> dg.AssetCheckResult:
    """Return the check result for row counts by outcome.

    :param failed: the outcome that must have no rows.
    """
    check_metadata = CheckMetadata(
        failed_rows=rows[failed],
        total_rows=sum(rows.values()),
        threshold=0.0,
        predicate=predicate,
        partitions=partitions,
        sample=tuple(sample),
    )
    counts = {f"{outcome}_rows": count for outcome, count in rows.items()}
    return dg.AssetCheckResult(
        passed=not rows[failed],
        severity=dg.AssetCheckSeverity.ERROR,
        description=description,
        metadata={**check_metadata.to_metadata(), **metadata, **counts},
    )


def _snapshot_of_run(history: History | None, run_id: str) -> Snapshot | None:
    """Return the run's snapshot if it is the current main."""
    main = history.main if history else None
    return main if main and main.commit and main.commit.run_id == run_id else None


def _increment(history: History, commit: CommitProperties, source: str) -> Increment | None:
    """Return the increment of a commit, or None if it computed its partitions in full."""
    if source not in commit.since:
        return None
    # An overwrite may take two commits.
    for snapshot in history.line:
        if snapshot.commit is None or snapshot.commit.write_id != commit.write_id:
            return Increment(commit.since[source], snapshot.snapshot_id)
    return Increment(commit.since[source], None)


def partitions_of(commit: CommitProperties) -> Partitions:
    """Return the partitions of a commit, with parsed bounds."""
    return Partitions(
        commit.partitions,
        tuple((bound(low), bound(high)) for low, high in commit.merged_ranges),
    )


def _accounted_result(accounted: Accounted, partitions: tuple[str, ...]) -> dg.AssetCheckResult:
    counts = ", ".join(f"{rows} {outcome}" for outcome, rows in accounted.rows.items())
    return rows_result(
        accounted.rows,
        "lost",
        "a delivered row is neither in the table, nor in its quarantine, nor superseded by a"
        " newer one",
        f"{counts} of {sum(accounted.rows.values())} delivered rows.",
        partitions=partitions,
        sample=accounted.sample,
        source_snapshot_id=str(accounted.source_snapshot_id),
    )
