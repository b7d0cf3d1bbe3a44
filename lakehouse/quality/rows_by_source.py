"""What became of the source rows that a run read: told by their file and number, in tables that
keep these.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.iceberg.erasure.gone_people import NOBODY_GONE, GonePeople, LeftOut
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.frame_joins import same_key, together
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.metadata.write_result import Pin
from lakehouse.iceberg.read.cleared_rows import read_cleared
from lakehouse.iceberg.read.pinned_frames import read, read_main
from lakehouse.quality.erased_rows import may_have_erased, without_erased
from lakehouse.tables.quoting import among, identifier
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

PLACES = ("clean", "quarantined", "superseded", "left_out", "twice")
"""Where a row may be: under a merged key another row may be, and what the function leaves out
is nowhere; `twice` is in the table and in its quarantine.
"""
CLEARED = "cleared"
"""Where a row is that a person cleared from the quarantine, and that is nowhere else; said only
where there are some.
"""
ERASED = "erased"
"""Where a row of a person who was erased is, that the function did not leave out; said only where
there are some.
"""
_FEW_FILES = 1000
_OF_ANY = "true"
_MANY_ROWS = 1_000_000
_SOURCE = list(SOURCE_COLUMNS)
_IS = f"xxhash64({', '.join(SOURCE_COLUMNS)})"
_SUMS = {
    "rows": "count(1)",
    "known_rows": f"count({', '.join(SOURCE_COLUMNS)})",
    "low": f"try_sum({_IS} & 4294967295)",
    "high": f"try_sum(shiftrightunsigned({_IS}, 32))",
}
"""What two sets of rows have in common where they are the same: how many they are, and in each half
of a hash of 64 bits, its sum.
"""
_Sums = tuple[int, ...]


@dataclass(frozen=True)
class Read:
    """Rows of a source that were read: as pinned, and by a SQL predicate."""

    pin: Pin
    where: str | None = None


def count_places(
    engine: Engine,
    target: IcebergTable,
    reads: Sequence[Read],
    gone: GonePeople = NOBODY_GONE,
) -> dict[str, int]:
    """Count the rows that were read of some sources by where they are, each one of `PLACES`, or
    `CLEARED` or `ERASED` where some are.
    """
    frames = [_row_keys(target, read(engine, source.pin, source.where)) for source in reads]
    delivered = together(frames, allow_missing=True)
    if _has_many_rows(engine, target):
        sums, of_these = _sums_of_files(delivered)
        if sums and _are_all_clean(engine, target, sums, of_these):
            return {**dict.fromkeys(PLACES, 0), "clean": sums[0]}
    else:
        of_these = _of_their_files(delivered)
    placed = _with_place(engine, target, delivered, of_these)
    rows = placed.groupBy("place").count().collect()
    counts = Counter({row["place"]: row["count"] for row in rows})
    if counts["left_out"]:
        left_out = placed.where("place = 'left_out'").select(*_SOURCE)
        people = gone.begin()
        counts[ERASED] = sum(
            _count_erased(engine, source, left_out, people) for source in reads
        )
        counts["left_out"] -= counts[ERASED]
    said = [*PLACES, *(place for place in (CLEARED, ERASED) if counts[place])]
    return {place: counts[place] for place in said}


def _count_erased(engine: Engine, source: Read, lacking: "DataFrame", people: LeftOut) -> int:
    """Return how many of the rows that a table lacks are of people who were erased."""
    if not may_have_erased(engine, source.pin, people):
        return 0
    rows = read(engine, source.pin, source.where).join(lacking, _SOURCE, "left_semi")
    return rows.count() - without_erased(engine, source.pin, rows, people).count()


def _row_keys(target: IcebergTable, rows: "DataFrame") -> "DataFrame":
    """Return of delivered rows their source, and the key that they are merged by where they
    have it.
    """
    types = dict(rows.dtypes)
    key = target.version_key
    terms = []
    if set(key) <= types.keys():
        for name in key:
            terms.append(f"{_cast(target, name, types[name])} AS {_key_alias(name)}")
    return rows.selectExpr(*_SOURCE, *terms)


def _key_alias(name: str) -> str:
    return identifier(f"__key_{name}")


def _cast(target: IcebergTable, name: str, delivered_type: str) -> str:
    quoted = identifier(name)
    is_cast = delivered_type != target.column(name).type
    return target.cast_sql(name, quoted) if is_cast else quoted


def _of_their_files(rows: "DataFrame") -> str:
    """Return the SQL predicate of rows of the same files; of many files, of any."""
    files = rows.select("_source_file").distinct().limit(_FEW_FILES + 1).collect()
    if len(files) > _FEW_FILES:
        return _OF_ANY
    return among("_source_file", [row[0] for row in files])


def _has_many_rows(engine: Engine, target: IcebergTable) -> bool:
    """Whether sums are made of rows first: in a small table, one query that looks for all of them
    is quicker.
    """
    return _rows_of(engine, target.name) >= _MANY_ROWS


def _sums_of_files(rows: "DataFrame") -> tuple[_Sums | None, str]:
    """Return the sums of rows, and the SQL predicate of rows of the same files: of few files, both
    by one look at all rows.
    """
    from pyspark.sql.functions import expr

    terms = [expr(sql).alias(name) for name, sql in _SUMS.items()]
    by_file = rows.groupBy("_source_file").agg(*terms).limit(_FEW_FILES + 1).collect()
    if len(by_file) > _FEW_FILES:
        return _sums(rows), _OF_ANY
    known = [sums for sums in map(_known, by_file) if sums]
    is_known = bool(known) and len(known) == len(by_file)
    total = tuple(map(sum, zip(*known, strict=True))) if is_known else None
    return total, among("_source_file", [row["_source_file"] for row in by_file])


def _sums(rows: "DataFrame") -> _Sums | None:
    row = rows.selectExpr(*(f"{sql} AS {name}" for name, sql in _SUMS.items())).first()
    assert row is not None
    return _known(row)


def _known(row: "Row") -> _Sums | None:
    """Return sums; None where a row does not tell its source, or one is too large."""
    sums = tuple(row[name] for name in _SUMS)
    is_known = row["rows"] == row["known_rows"] and None not in sums
    return sums if is_known else None


def _are_all_clean(engine: Engine, target: IcebergTable, sums: _Sums, of_these: str) -> bool:
    """Whether all rows of which these are the sums are in the table, that has no others of their
    files, and none is in its quarantine.

    Sums tell it, for which nothing is shuffled: where many rows are appended and none is missing,
    as is usual, looking for each of them takes many times as long.
    """
    if of_these == _OF_ANY and sums[0] != _rows_of(engine, target.name):
        return False
    there = read_main(engine, target.name).where(of_these)
    return sums == _sums(there) and not _has_refused(engine, target, of_these)


def _has_refused(engine: Engine, target: IcebergTable, of_these: str) -> bool:
    """Whether the quarantine of a table holds any of some rows; of an empty one metadata tells."""
    quarantine = target.quarantine
    if quarantine is None or not engine.catalog.has(quarantine.name):
        return False
    if not _rows_of(engine, quarantine.name):
        return False
    return not read_main(engine, quarantine.name).where(of_these).isEmpty()


def _rows_of(engine: Engine, table: str) -> int:
    main = read_history(engine, table).main
    return main.rows if main else 0


def _with_place(
    engine: Engine, target: IcebergTable, rows: "DataFrame", of_these: str
) -> "DataFrame":
    def marked(held: "DataFrame", mark: str) -> "DataFrame":
        sources = held.where(of_these).select(*_SOURCE).distinct()
        return sources.selectExpr("*", f"true AS {mark}")

    joined = rows.join(marked(read_main(engine, target.name), "__clean"), _SOURCE, "left")
    quarantined = cleared = superseded = "false"
    if target.quarantine is not None and engine.catalog.has(target.quarantine.name):
        quarantined = "__quarantined"
        refused = read_main(engine, target.quarantine.name)
        joined = joined.join(marked(refused, quarantined), _SOURCE, "left")
    cleared_rows = read_cleared(engine, target)
    if cleared_rows is not None:
        cleared = "__cleared"
        joined = joined.join(marked(cleared_rows, cleared), _SOURCE, "left")
    keys = [name for name in joined.columns if name.startswith("__key_")]
    if keys:
        superseded = "__superseded"
        terms = [f"{identifier(name)} AS {_key_alias(name)}" for name in target.version_key]
        merged = read_main(engine, target.name).selectExpr(*terms, f"true AS {superseded}")
        joined = joined.alias("s").join(merged.alias("m"), same_key(keys, "s", "m"), "left")
    return joined.selectExpr(
        *(f"s.{name}" if keys else name for name in _SOURCE),
        f"CASE WHEN __clean AND {quarantined} THEN 'twice' WHEN __clean THEN 'clean'"
        f" WHEN {quarantined} THEN 'quarantined' WHEN {superseded} THEN 'superseded'"
        f" WHEN {cleared} THEN 'cleared' ELSE 'left_out' END AS place",
    )
