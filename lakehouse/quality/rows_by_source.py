"""What became of the source rows that a run read: told by their file and number, in tables that
keep these.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.joins import together
from lakehouse.iceberg.metadata.write_result import Pin
from lakehouse.iceberg.read.inputs import read, read_main
from lakehouse.iceberg.write.prepared_frame import SOURCE_COLUMNS
from lakehouse.tables.quoting import among, identifier
from lakehouse.tables.table import IcebergTable, Merge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLACES = ("clean", "quarantined", "superseded", "left_out", "twice")
"""Where a row may be: of a merged key another row may stand, and what the function leaves out
is nowhere; `twice` is in the table and in its quarantine.
"""
_FEW_FILES = 1000
_SOURCE = list(SOURCE_COLUMNS)


@dataclass(frozen=True)
class Read:
    """Rows of a source that were read: as pinned, and by a SQL predicate."""

    pin: Pin
    where: str | None = None


def places(
    engine: Engine, target: IcebergTable, read_rows: Mapping[str, Read]
) -> dict[str, int]:
    """Count the rows that were read of some sources by where they are, each one of `PLACES`.

    :param read_rows: what was read, by source.
    """
    known = (_known(target, read(engine, one.pin, one.where)) for one in read_rows.values())
    rows = together(known, allow_missing=True)
    counted = _placed(engine, target, rows).groupBy("place").count().collect()
    found = Counter({row["place"]: row["count"] for row in counted})
    return {place: found[place] for place in PLACES}


def _known(target: IcebergTable, rows: "DataFrame") -> "DataFrame":
    """Return of delivered rows their source, and the key that they are merged by where they
    have it.
    """
    key = _key(target) if set(_key(target)) <= set(rows.columns) else ()
    types = dict(rows.dtypes)
    terms = [
        f"{_typed(target, name, types[name])} AS {identifier(f'__key_{name}')}" for name in key
    ]
    return rows.selectExpr(*_SOURCE, *terms)


def _key(target: IcebergTable) -> tuple[str, ...]:
    if target.versions:
        return tuple(target.versions.of)
    return tuple(target.write.on) if isinstance(target.write, Merge) else ()


def _typed(target: IcebergTable, name: str, found: str) -> str:
    quoted = identifier(name)
    return quoted if found == target.column(name).type else target.cast_sql(name, quoted)


def _placed(engine: Engine, target: IcebergTable, rows: "DataFrame") -> "DataFrame":
    files = [
        row[0] for row in rows.select("_source_file").distinct().limit(_FEW_FILES + 1).collect()
    ]
    of_these = among("_source_file", files) if len(files) <= _FEW_FILES else "true"
    standing = (
        read_main(engine, target.name)
        .where(of_these)
        .select(*_SOURCE)
        .distinct()
        .selectExpr("*", "true AS __t")
    )
    joined = rows.join(standing, _SOURCE, "left")
    held = "false"
    if target.quarantine is not None and engine.catalog.has(target.quarantine.name):
        refused = read_main(engine, target.quarantine.name).where(of_these)
        joined = joined.join(
            refused.select(*_SOURCE).distinct().selectExpr("*", "true AS __q"), _SOURCE, "left"
        )
        held = "__q"
    superseded = "false"
    keys = [name for name in joined.columns if name.startswith("__key_")]
    if keys:
        terms = [
            f"{identifier(name)} AS {identifier(f'__key_{name}')}" for name in _key(target)
        ]
        merged = read_main(engine, target.name).selectExpr(*terms, "true AS __k")
        joined = joined.join(merged, keys, "left")
        superseded = "__k"
    place = (
        f"CASE WHEN __t AND {held} THEN 'twice' WHEN __t THEN 'clean' WHEN {held} THEN"
        f" 'quarantined' WHEN {superseded} THEN 'superseded' ELSE 'left_out' END AS place"
    )
    return joined.selectExpr(place)
