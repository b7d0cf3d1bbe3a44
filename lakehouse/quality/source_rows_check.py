"""The default check of tables that keep source columns: accounts for the source rows of a run."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.suppression_list import (
    NO_SUPPRESSION,
    RowFilter,
    SuppressionList,
)
from lakehouse.iceberg.frames.broadcast_joins import same_key
from lakehouse.iceberg.frames.frames import union_all
from lakehouse.iceberg.metadata.commit_record import CommitProperties
from lakehouse.iceberg.metadata.snapshots import History, Snapshot, read_history
from lakehouse.iceberg.read.cleared_rows import read_cleared
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.pinned_frames import read, read_main
from lakehouse.iceberg.read.pinned_inputs import pin_since
from lakehouse.iceberg.values.write_result import Pin
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.asset_specs import inputs_of
from lakehouse.quality.row_accounting import (
    CLEARED,
    ERASED,
    NAME,
    accounted_check,
    kept_state,
    may_have_erased,
    partitions_of,
    rows_check,
    rows_result,
    without_erased,
)
from lakehouse.tables.quoting import identifier, in_values
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


PLACES = ("clean", "quarantined", "superseded", "left_out", "twice")
"""Outcomes of a row. `superseded` means that the merge key has another row, `left_out` that the
function dropped it, and `twice` that it is in the table and in its quarantine.
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
"""A fingerprint of a set of rows: its size, and the sum of each half of a 64-bit hash."""
_Sums = tuple[int, ...]


@dataclass(frozen=True)
class Read:
    """Rows that were read from a source: a pinned snapshot and a SQL predicate."""

    pin: Pin
    where: str | None = None


def count_places(
    engine: Engine,
    target: IcebergTable,
    reads: Sequence[Read],
    suppression: SuppressionList = NO_SUPPRESSION,
) -> dict[str, int]:
    """Count the source rows by outcome: `PLACES`, and `CLEARED` and `ERASED` if there are any."""
    frames = [_row_keys(target, read(engine, source.pin, source.where)) for source in reads]
    delivered = union_all(frames, allow_missing=True)
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
        people = suppression.filter()
        counts[ERASED] = sum(
            _count_erased(engine, source, left_out, people) for source in reads
        )
        counts["left_out"] -= counts[ERASED]
    reported = [*PLACES, *(place for place in (CLEARED, ERASED) if counts[place])]
    return {place: counts[place] for place in reported}


def _count_erased(engine: Engine, source: Read, lacking: "DataFrame", people: RowFilter) -> int:
    if not may_have_erased(engine, source.pin, people):
        return 0
    rows = read(engine, source.pin, source.where).join(lacking, _SOURCE, "left_semi")
    return rows.count() - without_erased(engine, source.pin, rows, people).count()


def _row_keys(target: IcebergTable, rows: "DataFrame") -> "DataFrame":
    """Return the source columns of delivered rows, and their merge key if they have it."""
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
    """Return the SQL predicate of rows of the same files; of all files if there are many."""
    files = rows.select("_source_file").distinct().limit(_FEW_FILES + 1).collect()
    if len(files) > _FEW_FILES:
        return _OF_ANY
    return in_values("_source_file", [row[0] for row in files])


def _has_many_rows(engine: Engine, target: IcebergTable) -> bool:
    """Return whether fingerprints are compared first; for a small table, one join is faster."""
    return _rows_of(engine, target.name) >= _MANY_ROWS


def _sums_of_files(rows: "DataFrame") -> tuple[_Sums | None, str]:
    """Return the fingerprint of rows, and the SQL predicate of rows of the same files."""
    from pyspark.sql.functions import expr

    terms = [expr(sql).alias(name) for name, sql in _SUMS.items()]
    by_file = rows.groupBy("_source_file").agg(*terms).limit(_FEW_FILES + 1).collect()
    if len(by_file) > _FEW_FILES:
        return _sums(rows), _OF_ANY
    known = [sums for sums in map(_known, by_file) if sums]
    is_known = bool(known) and len(known) == len(by_file)
    total = tuple(map(sum, zip(*known, strict=True))) if is_known else None
    return total, in_values("_source_file", [row["_source_file"] for row in by_file])


def _sums(rows: "DataFrame") -> _Sums | None:
    row = rows.selectExpr(*(f"{sql} AS {name}" for name, sql in _SUMS.items())).first()
    assert row is not None
    return _known(row)


def _known(row: "Row") -> _Sums | None:
    """Return a fingerprint; None if a row lacks its source or a sum overflows."""
    sums = tuple(row[name] for name in _SUMS)
    is_known = row["rows"] == row["known_rows"] and None not in sums
    return sums if is_known else None


def _are_all_clean(engine: Engine, target: IcebergTable, sums: _Sums, of_these: str) -> bool:
    """Return whether the table contains exactly the fingerprinted rows of these files, and its
    quarantine none.

    Fingerprints need no shuffle. In the usual case of many appended rows and none missing, a
    join takes many times as long.
    """
    if of_these == _OF_ANY and sums[0] != _rows_of(engine, target.name):
        return False
    there = read_main(engine, target.name).where(of_these)
    return sums == _sums(there) and not _has_quarantined(engine, target, of_these)


def _has_quarantined(engine: Engine, target: IcebergTable, of_these: str) -> bool:
    """Whether the quarantine contains any of the rows."""
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
    def marked(stored: "DataFrame", mark: str) -> "DataFrame":
        sources = stored.where(of_these).select(*_SOURCE).distinct()
        return sources.selectExpr("*", f"true AS {mark}")

    joined = rows.join(marked(read_main(engine, target.name), "__clean"), _SOURCE, "left")
    quarantined = cleared = superseded = "false"
    if target.quarantine is not None and engine.catalog.has(target.quarantine.name):
        quarantined = "__quarantined"
        in_quarantine = read_main(engine, target.quarantine.name)
        joined = joined.join(marked(in_quarantine, quarantined), _SOURCE, "left")
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


_DESCRIPTIONS = {
    "clean": "in the table",
    "quarantined": "quarantined",
    "superseded": "superseded",
    "left_out": "left out by the function",
    "twice": "in the table and in the quarantine",
    CLEARED: "cleared from the quarantine",
    ERASED: "erased",
}


def default_checks(
    assets: Iterable[dg.AssetsDefinition | dg.AssetSpec], declared: Mapping[str, IcebergTable]
) -> list[dg.AssetChecksDefinition]:
    """Make the undeclared checks of tables that keep source columns and read such tables."""
    computed = [asset for asset in assets if isinstance(asset, dg.AssetsDefinition)]
    checked = set()
    for asset in computed:
        checked |= {key.asset_key for key in asset.check_keys if key.name == NAME}
    checks = []
    for asset in computed:
        for spec in asset.specs:
            check = None if spec.key in checked else _default_check(spec, declared)
            if check:
                checks.append(check)
    return checks


def _default_check(
    spec: dg.AssetSpec, declared: Mapping[str, IcebergTable]
) -> dg.AssetChecksDefinition | None:
    target = declared.get(table_name(spec.key))
    if target is None or not _keeps_source(target):
        return None
    inputs = _followed_inputs(inputs_of(spec.metadata).values(), target, declared)
    if not inputs:
        return None
    by = [(source, followed.by) for source, followed in inputs.items() if followed.by]
    may_lose_none = target.versions is not None and not target.versions.may_leave_out
    if may_lose_none and target.quarantine and target.overwritten_by and len(by) == 1:
        source, column = by[0]
        return accounted_check(declared[source], target, by=column)
    return source_check(target, inputs)


def _followed_inputs(
    inputs: Iterable[Input], target: IcebergTable, declared: Mapping[str, IcebergTable]
) -> dict[str, Input]:
    followed = {}
    for table_input in inputs:
        source = declared.get(table_input.table)
        is_followed = (
            table_input.mode in ("incremental", "latest")
            and not table_input.outside
            and table_input.table != target.name
        )
        if source is not None and is_followed and _keeps_source(source):
            followed[table_input.table] = table_input
    return followed


def _keeps_source(table: IcebergTable) -> bool:
    return set(SOURCE_COLUMNS) <= set(table.column_names)


def source_check(target: IcebergTable, inputs: Mapping[str, Input]) -> dg.AssetChecksDefinition:
    """Make the check that no source row is both in a table and in its quarantine, and count the
    others.

    In a run that computed the table, it covers what that run read; otherwise, everything that
    the table was computed from.

    :param inputs: the input declarations by source table.
    """

    def evaluate(
        engine: Engine,
        history: History | None,
        snapshot: Snapshot | None,
        suppression: SuppressionList,
    ) -> dg.AssetCheckResult:
        reads = []
        if history is not None:
            for table_input in inputs.values():
                source_rows = _read(engine, history, snapshot, table_input)
                if source_rows is not None:
                    reads.append(source_rows)
        if not reads:
            return _places_result(dict.fromkeys(PLACES, 0))
        return _places_result(count_places(engine, target, reads, suppression))

    return rows_check(
        target,
        f"Each row of {', '.join(inputs)} is in {target.name} or in its quarantine, was"
        " superseded, or is counted as left out by the function.",
        evaluate,
    )


def _read(
    engine: Engine, history: History, snapshot: Snapshot | None, table_input: Input
) -> Read | None:
    """Return what a run's commit read from a source; without one, all that was computed."""
    source = table_input.table
    if snapshot is None or snapshot.commit is None:
        until = kept_state(engine, source, history.watermark(source))
        return Read(Pin(source, until)) if until else None
    commit = snapshot.commit
    until = commit.read.get(source) or commit.inputs.get(source)
    if until is None:
        return None
    where = None
    if commit.read:
        since = commit.since.get(source)
        if table_input.by:
            where = partitions_of(commit).predicate(table_input.by)
    else:
        since = _watermark_before(history, commit, table_input)
    if since is None:
        return Read(Pin(source, until), where)
    return Read(pin_since(read_history(engine, source), since, until), where)


def _watermark_before(
    history: History, commit: CommitProperties, table_input: Input
) -> int | None:
    if table_input.mode != "incremental":
        return None
    for snapshot in history.line:
        earlier = snapshot.commit
        if (
            earlier
            and earlier.write_id != commit.write_id
            and table_input.table in earlier.inputs
        ):
            return earlier.inputs[table_input.table]
    return None


def _places_result(rows: Mapping[str, int]) -> dg.AssetCheckResult:
    counts = ", ".join(f"{count} {_DESCRIPTIONS[place]}" for place, count in rows.items())
    return rows_result(
        rows,
        "twice",
        "a row of the source is in the table and in its quarantine",
        f"{counts}, of {sum(rows.values())} source rows.",
    )
