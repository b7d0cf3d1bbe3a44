"""Whether every delivered row came to something: it counts, it is refused, or a newer version
of it counts.
"""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.metadata.joins import FEW, having
from lakehouse.iceberg.metadata.write_result import Pin
from lakehouse.iceberg.read.inputs import pin_since, read, read_main
from lakehouse.iceberg.read.version_keys import key_terms, newest_sql
from lakehouse.iceberg.rules.sample_rows import sample_of
from lakehouse.iceberg.write.prepared_frame import SOURCE_COLUMNS
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FATES = ("clean", "quarantined", "superseded", "pending", "lost")
"""What may become of a row; of a pending one another version has arrived that is yet to be
computed.
"""
_IS = "struct(xxhash64(_source_file, _source_sha256) AS file, _source_row AS row) AS __is"
"""What tells a row from all others in a few bytes: its file by a hash, and its number there."""
_PENDING = "WHEN __waits THEN 'pending'"


@dataclass(frozen=True)
class Accounted:
    """How many rows of a source came to what, and a sample of those that came to nothing."""

    source_snapshot_id: int | None
    rows: dict[str, int]
    sample: tuple[Any, ...] = ()

    @property
    def total(self) -> int:
        """All rows that were looked at."""
        return sum(self.rows.values())


@dataclass(frozen=True)
class Came:
    """What a run computed that added to what stood: the source's rows after `since`, to the
    target as of `stood`.
    """

    since: int
    stood: int | None


def account(
    engine: Engine,
    source: IcebergTable,
    target: IcebergTable,
    snapshot_id: int | None,
    where: str | None = None,
    *,
    first: str | None = None,
    computed_id: int | None = None,
    came: Came | None = None,
) -> Accounted:
    """Follow each row of a source to the target, its quarantine, or the version that displaced
    it.

    :param snapshot_id: the state of the source to look at; None where the target was not yet
        computed from any.
    :param where: a SQL predicate on the source's rows to look at; all where it is left out.
    :param first: a SQL predicate on the target's rows, where most of those that are looked for
        stand; a second query looks for the others in all of the target.
    :param computed_id: the state of the source that the whole target is computed from; what
        came later may be pending.
    :param came: where only what came was computed; then the rows that stood, and do no more,
        are followed beside that.
    """
    if snapshot_id is None:
        return Accounted(None, dict.fromkeys(FATES, 0))
    pinned = Pin(source.name, snapshot_id)
    if came is not None:
        pinned = pin_since(read_history(engine, source.name), came.since, snapshot_id)
    rows = _known(target, read(engine, pinned, where))
    if came is not None and came.stood is not None:
        rows = _with_newest(target, rows).unionByName(_gone(engine, target, came.stood, first))
    pending = _arrived(engine, source, computed_id)
    fates = _fates(
        engine, target, rows, within=first or "true", pending=None if first else pending
    )
    counted = _count(fates)
    if first and counted["lost"]:
        rest = fates.where("fate = 'lost'").drop("fate").localCheckpoint()
        fates = _fates(engine, target, rest, pending=pending, rest=counted.pop("lost"))
        counted += _count(fates)
    lost = (
        sample_of(engine, source, fates.where("fate = 'lost'").select(*SOURCE_COLUMNS))
        if counted["lost"]
        else ()
    )
    return Accounted(snapshot_id, {fate: counted[fate] for fate in FATES}, lost)


def _gone(engine: Engine, target: IcebergTable, stood: int, within: str | None) -> "DataFrame":
    """Return what stood in a past state of the target, and does no more, by what it is looked
    for by.
    """
    now = read_main(engine, target.name).where(within or "true").selectExpr(_IS)
    return _known(target, read(engine, Pin(target.name, stood), within)).join(
        now, "__is", "left_anti"
    )


def _with_newest(target: IcebergTable, rows: "DataFrame") -> "DataFrame":
    """Return delivered rows with what tells a newer version in the target's type."""
    typed = newest_sql(target, "__newest", dict(rows.dtypes)["__newest"])
    return rows.selectExpr(
        *(f"{typed} AS __newest" if name == "__newest" else name for name in rows.columns)
    )


def _count(fates: "DataFrame") -> Counter[str]:
    return Counter(
        {row["fate"]: row["count"] for row in fates.groupBy("fate").count().collect()}
    )


def _arrived(engine: Engine, source: IcebergTable, since: int | None) -> "DataFrame | None":
    """Return the rows that came to a source since it was last computed from as a whole; None
    where there are none.
    """
    history = read_history(engine, source.name)
    until = history.main.snapshot_id if history.main else None
    if until is None or until == since:
        return None
    return read(engine, pin_since(history, since, until))


def _known(target: IcebergTable, delivered: "DataFrame") -> "DataFrame":
    """Return of delivered rows what they are looked for by."""
    assert target.versions is not None
    newest = identifier(target.versions.newest[0])
    return delivered.selectExpr(
        *SOURCE_COLUMNS, *key_terms(target, delivered), f"{newest} AS __newest", _IS
    )


def _fates(
    engine: Engine,
    target: IcebergTable,
    rows: "DataFrame",
    *,
    within: str = "true",
    pending: "DataFrame | None" = None,
    rest: int = 0,
) -> "DataFrame":
    """Return rows as they are `_known`, each with its fate, one of `FATES`.

    A row is looked for by its key: what stands under that is the row itself or what displaced
    it.

    :param within: a SQL predicate on the target's rows to look at.
    :param rest: how many rows these are where they are known not to be in the quarantine.
    """
    from pyspark.sql.functions import expr

    assert target.quarantine is not None
    assert target.versions is not None
    keys = [*map(identifier, target.versions.of)]
    first = identifier(target.versions.newest[0])
    standing = (
        read_main(engine, target.name)
        .where(within)
        .selectExpr(*keys, f"{first} AS __standing", _IS)
    )
    held = read_main(engine, target.quarantine.name).selectExpr(_IS, "true AS __held")
    if rest:
        held = held.where("false")
    if 0 < rest < FEW:
        # The rows that an outer join keeps cannot be sent to all processes; like this, those
        # beside them are few too.
        standing = having(standing, rows.selectExpr(*keys), list(target.versions.of), rest)
    same = " AND ".join(f"s.{name} = v.{name}" for name in keys)
    # Cast here, of the few rows that get so far: reading moments takes longer than all else.
    newest = newest_sql(target, "__newest", dict(rows.dtypes)["__newest"])
    fate = (
        "CASE WHEN __held THEN 'quarantined' WHEN v.__is = s.__is THEN 'clean' "
        f"WHEN __standing >= coalesce({newest}, __standing) THEN 'superseded' "
        f"{'' if pending is None else _PENDING} ELSE 'lost' END AS fate"
    )
    joined = rows.alias("s").join(standing.alias("v"), expr(same), "left")
    joined = joined.join(held.alias("q"), expr("s.__is = q.__is"), "left")
    if pending is not None:
        waiting = pending.selectExpr(*key_terms(target, pending)).distinct()
        joined = joined.join(
            waiting.selectExpr("*", "true AS __waits").alias("w"),
            expr(same.replace("v.", "w.")),
            "left",
        )
    return joined.selectExpr("s.*", fate)
