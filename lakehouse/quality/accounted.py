"""Whether every delivered row came to something: it counts, it is refused, or a newer version of it counts."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.engine import Engine
from lakehouse.iceberg.history import read_history
from lakehouse.iceberg.outcome import Pin
from lakehouse.iceberg.quoting import identifier
from lakehouse.iceberg.read import read
from lakehouse.iceberg.table import IcebergTable
from lakehouse.iceberg.versions import key_sql, newest_sql
from lakehouse.iceberg.writing.audit import sample_of
from lakehouse.iceberg.writing.candidate import SOURCE_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FATES = ("clean", "quarantined", "superseded", "lost")
_NEWEST = "__newest"


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


def account(
    engine: Engine, source: IcebergTable, target: IcebergTable, snapshot_id: int | None, where: str | None = None
) -> Accounted:
    """Follow each row of a source to the target, its quarantine, or the version that displaced it, in one query.

    :param snapshot_id: the state of the source that the target was computed from; None where it was not yet.
    :param where: a SQL predicate on the source's rows to look at; all where it is left out.
    """
    if snapshot_id is None:
        return Accounted(None, dict.fromkeys(FATES, 0))
    fates = _fates(engine, target, read(engine, Pin(source.name, snapshot_id), where))
    counted = fates.groupBy("fate").count().collect()
    rows = dict.fromkeys(FATES, 0) | {row["fate"]: row["count"] for row in counted}
    lost = sample_of(engine, source, fates.where("fate = 'lost'").select(*SOURCE_COLUMNS)) if rows["lost"] else ()
    return Accounted(snapshot_id, rows, lost)


def _fates(engine: Engine, target: IcebergTable, delivered: "DataFrame") -> "DataFrame":
    """Return the source of each row and its fate, one of `FATES`."""
    from pyspark.sql.functions import expr

    assert target.quarantine is not None
    keys = key_sql(target, delivered)
    typed = [f"{sql} AS {identifier(name)}" for name, sql in keys.items()]
    rows = delivered.selectExpr(*SOURCE_COLUMNS, *typed, f"{newest_sql(target, delivered)} AS {_NEWEST}")
    clean, quarantined = _now(engine, target.name), _now(engine, target.quarantine.name)
    placed = clean.selectExpr(*SOURCE_COLUMNS, "'clean' AS place").unionAll(
        quarantined.selectExpr(*SOURCE_COLUMNS, "'quarantined' AS place")
    )
    first = identifier(target.versions.newest[0])  # type: ignore[union-attr]
    standing = clean.selectExpr(*map(identifier, keys), f"{first} AS standing_newest")
    same = " AND ".join(f"s.{identifier(name)} = v.{identifier(name)}" for name in keys)
    fate = (
        f"CASE WHEN place IS NOT NULL THEN place WHEN standing_newest >= coalesce({_NEWEST}, standing_newest) "
        "THEN 'superseded' ELSE 'lost' END AS fate"
    )
    joined = rows.join(placed, list(SOURCE_COLUMNS), "left").alias("s")
    return joined.join(standing.alias("v"), expr(same), "left").selectExpr(*SOURCE_COLUMNS, fate)


def _now(engine: Engine, table: str) -> "DataFrame":
    main = read_history(engine, table).main
    return read(engine, Pin(table, main.snapshot_id if main else None))
