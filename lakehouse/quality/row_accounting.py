"""Whether every delivered row came to something: it counts, it is refused, or a newer version
of it counts.
"""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.erasure.gone_people import NOBODY_GONE, GonePeople, LeftOut
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.frame_joins import FEW, same_key, with_keys
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.metadata.write_result import Pin
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
from lakehouse.iceberg.write.kept_rows import keeping_rows
from lakehouse.quality.erased_rows import may_have_erased, without_erased
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OUTCOMES = ("clean", "quarantined", "superseded", "pending", "lost")
"""What may become of a row; of a pending one another version has arrived that is yet to be
computed.
"""
ERASED = "erased"
"""What became of a row of a person who was erased: its source had it at the time, or has it still
and it was left out; said only where there are some.
"""
CLEARED = "cleared"
"""What became of a row that a person cleared from the quarantine, and that is nowhere else; said
only where there are some.
"""
_IS = "struct(xxhash64(_source_file, _source_sha256) AS file, _source_row AS row) AS __is"
"""What tells a row from all others in a few bytes: its file by a hash, and its number there."""
_ANYWHERE = "true"
_NEWEST = "__newest_"
"""What stands before the name of a column that orders versions, as it was delivered."""


@dataclass(frozen=True)
class Accounted:
    """How many rows of a source came to what, and a sample of those that came to nothing."""

    source_snapshot_id: int | None
    rows: dict[str, int]
    sample: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Increment:
    """What a run added to existing rows: the source's rows after the snapshot `since`, to the
    target as it was at the snapshot `target_before`.
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
    gone: GonePeople = NOBODY_GONE,
) -> Accounted:
    """Follow each row of a source to the target, its quarantine, or the version that displaced
    it.

    :param snapshot_id: the state of the source to look at; None where the target was not yet
        computed from any.
    :param where: a SQL predicate on the source's rows to look at; all where it is left out.
    :param first: a SQL predicate on the target's rows, where most of those that are looked for
        are; a second query looks for the others in all of the target.
    :param computed_id: the state of the source that the whole target is computed from; what
        came later may be pending.
    :param increment: where only new rows were computed; then the existing rows that the run
        removed are followed too.
    :param gone: who was erased: rows of theirs that were made before are left out on purpose.
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
            lost_before = counts.pop("lost")
            outcomes = _with_outcome(engine, target, rest, pending=pending, rest=lost_before)
            counts += _count(outcomes)
        if counts["lost"]:
            lost = outcomes.where("__outcome = 'lost'")
            not_erased = _without_erased(
                engine, Pin(source.name, snapshot_id), lost, gone.begin()
            )
            if not_erased is not None:
                lost = not_erased
                counts[ERASED] = counts["lost"] - lost.count()
                counts["lost"] -= counts[ERASED]
            if counts["lost"]:
                sample = sample_of(engine, source, lost.select(*SOURCE_COLUMNS))
    said = [*OUTCOMES, *(outcome for outcome in (CLEARED, ERASED) if counts[outcome])]
    return Accounted(snapshot_id, {outcome: counts[outcome] for outcome in said}, sample)


def _without_erased(
    engine: Engine, source: Pin, lost: "DataFrame", left_out: LeftOut
) -> "DataFrame | None":
    """Return the lost rows that are of nobody who was erased; None where nobody was."""
    if not may_have_erased(engine, source, left_out):
        return None
    rows = read(engine, source).selectExpr("*", _IS)
    theirs = rows.join(lost.select("__is"), "__is", "left_semi")
    kept = without_erased(engine, source, theirs, left_out)
    return lost.join(kept.select("__is"), "__is", "left_semi")


def _removed_rows(
    engine: Engine, target: IcebergTable, before_id: int, within: str | None
) -> "DataFrame":
    """Return the keys of the rows that a past state of the target had, and that it has no
    more.
    """
    current = read_main(engine, target.name).where(within or "true").selectExpr(_IS)
    before = _row_keys(target, read(engine, Pin(target.name, before_id), within))
    return before.join(current, "__is", "left_anti")


def _typed(target: IcebergTable, rows: "DataFrame") -> "DataFrame":
    """Return delivered rows with what orders versions in the target's types."""
    from pyspark.sql.functions import expr

    return rows.withColumns({name: expr(sql) for name, sql in _newest(target, rows).items()})


def _count(outcomes: "DataFrame") -> Counter[str]:
    rows = outcomes.groupBy("__outcome").count().collect()
    return Counter({row["__outcome"]: row["count"] for row in rows})


def _arrived_since(
    engine: Engine, source: IcebergTable, since: int | None
) -> "DataFrame | None":
    """Return the rows that came to a source since it was last computed from as a whole; None
    where there are none.
    """
    history = read_history(engine, source.name)
    if history.main is None or history.main.snapshot_id == since:
        return None
    return read(engine, pin_since(history, since, history.main.snapshot_id))


def _row_keys(target: IcebergTable, delivered: "DataFrame") -> "DataFrame":
    """Return of delivered rows what they are looked for by."""
    versions = declared_versions(target)
    # What tells a row may tell its versions too.
    source = [name for name in SOURCE_COLUMNS if name not in versions.of]
    newest = []
    for name in versions.newest:
        known = delivered_name(target, name, delivered.columns)
        # The function may make it of others: nothing is known of it here.
        value = identifier(known) if known in delivered.columns else "CAST(NULL AS string)"
        newest.append(f"{value} AS {identifier(_NEWEST + name)}")
    return delivered.selectExpr(*source, *key_terms(target, delivered), *newest, _IS)


def _newest(target: IcebergTable, rows: "DataFrame") -> dict[str, str]:
    """Return SQL for what orders the versions of `_row_keys`, in the target's types, by their
    names there.
    """
    types = dict(rows.dtypes)
    newest = {}
    for name in declared_versions(target).newest:
        delivered = _NEWEST + name
        newest[delivered] = typed_sql(target, name, identifier(delivered), types[delivered])
    return newest


def _existing(engine: Engine, target: IcebergTable, within: str) -> "DataFrame":
    """Return the key of the target's rows, their place among its versions, and what they are."""
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
    """Return rows of `_row_keys`, each with its outcome: one of `OUTCOMES`, or `CLEARED`.

    A row is looked for by its key: what the target has under that is the row itself or what
    displaced it.

    :param within: a SQL predicate on the target's rows to look at.
    :param rest: how many rows these are where they are known not to be in the quarantine.
    """
    from pyspark.sql.functions import expr

    assert target.quarantine is not None
    versions = declared_versions(target)
    keys = list(map(identifier, versions.of))
    existing = _existing(engine, target, within)
    # A row may be refused in several pieces, and counts once.
    refused = read_main(engine, target.quarantine.name).selectExpr(_IS, "true AS __refused")
    if not read_history(engine, target.quarantine.name).is_empty:
        refused = refused.distinct()
    if rest:
        refused = refused.where("false")
    if 0 < rest < FEW:
        # The rows that an outer join keeps cannot be sent to all processes; like this, those
        # beside them are few too.
        existing = with_keys(existing, rows.selectExpr(*keys), versions.of, rest)
    joined = rows.alias("s").join(existing.alias("v"), same_key(versions.of, "s", "v"), "left")
    joined = joined.join(refused.alias("q"), expr("s.__is = q.__is"), "left")
    when_pending = when_cleared = ""
    if pending is not None:
        waiting = pending.selectExpr(*key_terms(target, pending)).distinct()
        joined = joined.join(
            waiting.selectExpr("*", "true AS __waits").alias("w"),
            same_key(versions.of, "s", "w"),
            "left",
        )
        when_pending = "WHEN __waits THEN 'pending'"
    # Another look may find the others elsewhere.
    cleared = read_cleared(engine, target) if within == _ANYWHERE else None
    if cleared is not None:
        known = cleared.selectExpr(_IS, "true AS __cleared").distinct().alias("c")
        joined = joined.join(known, expr("s.__is = c.__is"), "left")
        when_cleared = "WHEN __cleared THEN 'cleared'"
    # Cast here, of the few rows that get so far: reading moments takes longer than all else.
    newest = _newest(target, rows)
    is_newer = is_newer_sql(newest, "__existing")
    return joined.selectExpr(
        "s.*",
        "CASE WHEN __refused THEN 'quarantined' WHEN v.__is = s.__is THEN 'clean' "
        f"WHEN __existing IS NOT NULL AND NOT {is_newer} THEN 'superseded' "
        f"{when_cleared} {when_pending} ELSE 'lost' END AS __outcome",
    )
