"""Selection of the newest accepted version of each key."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from lakehouse.errors import FrameMismatch
from lakehouse.iceberg.frames.broadcast_joins import BROADCAST_KEY_LIMIT, with_keys
from lakehouse.iceberg.frames.frames import union_all
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.row_version_inputs import (
    EXISTING,
    EXISTING_OUTSIDE,
    has_no_partition,
    outside_name,
    versioned_inputs,
)
from lakehouse.iceberg.read.version_keys import (
    declared_versions,
    few_keys,
    few_keys_predicate,
    is_newer_sql,
    key_locations,
    order_sql,
)
from lakehouse.iceberg.values.write_context import Partitions
from lakehouse.iceberg.write.kept_rows import Keep, keep_on_one_machine
from lakehouse.iceberg.write.prepared_frame import DELETED, PreparedFrame, prepare
from lakehouse.tables.quoting import identifier, in_values, without_zone
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable, Merge, Versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RANK = "__rank"
_REJECTED = "__rejected"
_ROLE = "__role"
_RIVAL, _EXISTING_ROW, _DELIVERY = 0, 1, 2
"""Roles of a version; among equal ones, the new delivery precedes the existing row."""
_MOST_PARTITIONS = 10_000
"""Number of partitions that fit easily into a statement."""
_NEWEST = "__newest"
_NONE_ACCEPTED = "__none_accepted"
_FILE_ORDER = ("_ingested_at", "_source_modified_at", "_source_file", "_source_row")
"""Order of the rows of one key if the table declares no versions: by delivery."""


def select_versions(
    table: IcebergTable,
    inputs: Mapping[str, Input],
    compute: "Callable[..., DataFrame]",
    partitions: Partitions | None,
    keep: Keep = keep_on_one_machine,
) -> "Callable[..., DataFrame]":
    """Wrap a function so that only the newest versions of its rows of versioned inputs are kept.

    :param inputs: as declared; the wrapper receives all their reads.
    """
    versioned = versioned_inputs(inputs)
    if not versioned:
        return compute
    if table.overwritten_by is None:
        return lambda **frames: _newest_version(table, compute(**frames))

    def newest_of_partitions(**frames: "DataFrame") -> "DataFrame":
        arrived = {name: frames[name] for name in inputs}
        rivals = dict(arrived)
        for name, declared in versioned.items():
            outside = frames[outside_name(name)]
            unplaced = has_no_partition(partitions, declared.by or "")
            arrived[name] = arrived[name].unionByName(outside.where(unplaced))
            rivals[name] = outside.where(f"NOT ({unplaced})")
        return newest_accepted(
            table,
            compute(**arrived),
            rival=compute(**rivals),
            standing=frames[EXISTING],
            outside_rows=frames.get(EXISTING_OUTSIDE),
            keep=keep,
        )

    return newest_of_partitions


def _newest_version(table: IcebergTable, frame: "DataFrame") -> "DataFrame":
    """Keep the newest accepted version of each key, in the declared order or by file."""
    if table.versions is not None:
        return newest_accepted(table, frame)
    assert isinstance(table.write, Merge)
    missing = [name for name in _FILE_ORDER if name not in frame.columns]
    if missing:
        raise FrameMismatch(
            f"{table.name}: the frame lacks {', '.join(missing)}; expected"
            f" {', '.join(_FILE_ORDER)}, which determine the newest row.",
            next_step=(
                "Return these columns unchanged; those that are not in the table are removed."
            ),
        )
    # A delivered column with the stamp's name is only used for the order; the write sets the
    # stamp.
    known = _known_names(table) - {table.stamp}
    extra_columns = [name for name in frame.columns if name not in known]
    prepared = prepare(table, frame, extra_columns).evaluated()
    evaluated = prepared.frame.selectExpr(
        "*", f"{prepared.rejected_predicate} AS {_REJECTED}", f"{_DELIVERY} AS {_ROLE}"
    )
    order = [f"{identifier(name)} DESC" for name in _FILE_ORDER]
    if table.write.within_file == "first":
        order[-1] = identifier(_FILE_ORDER[-1])
    versions = Versions(table.write.on, _FILE_ORDER)
    newest = _newest(prepared, versions, evaluated, order, rank="row_number()")
    return newest.drop(*extra_columns)


def newest_accepted(
    table: IcebergTable,
    frame: "DataFrame",
    *,
    rival: "DataFrame | None" = None,
    standing: "DataFrame | None" = None,
    outside_rows: "DataFrame | None" = None,
    keep: Keep = keep_on_one_machine,
) -> "DataFrame":
    """Keep the newest accepted version of each key, and rejected versions that are not corrected.

    An accepted version that is not older corrects a rejected one, in any order of arrival, so the
    result does not depend on the number of runs. The table's `versions` define key and order. The
    result is cast and evaluated, for the table's write only.

    :param frame: the delivered rows; columns that are not in the table are removed.
    :param rival: delivered rows of other partitions, which only replace and correct.
    :param standing: existing rows in the run's partitions, kept unless a newer version comes.
    :param outside_rows: existing rows of other partitions, which replace and correct.
    :param keep: caches the keys and partitions of matching rows in `outside_rows`.
    """
    versions = declared_versions(table)
    order = [*map(identifier, dict.fromkeys((*versions.of, *versions.newest)))]
    candidate = _prepared(table, frame)
    seen = [
        candidate.frame.selectExpr(
            "*", f"{candidate.rejected_predicate} AS {_REJECTED}", f"{_DELIVERY} AS {_ROLE}"
        )
    ]
    if rival is not None:
        outside = _prepared(table, rival)
        seen += [
            outside.frame.selectExpr(
                *order, f"{outside.rejected_predicate} AS {_REJECTED}", f"{_RIVAL} AS {_ROLE}"
            )
        ]
    if standing is not None:
        seen += [
            candidate.known(standing).selectExpr(
                "*", f"false AS {_REJECTED}", f"{_EXISTING_ROW} AS {_ROLE}"
            )
        ]
    if outside_rows is not None:
        keys = candidate.frame.selectExpr(*map(identifier, versions.of))
        relevant = _versions_of(table, outside_rows, keys, keep)
        seen += [relevant.selectExpr(*order, f"false AS {_REJECTED}", f"{_RIVAL} AS {_ROLE}")]
    newest_first = [f"{identifier(name)} DESC" for name in versions.newest]
    return _newest(candidate, versions, union_all(seen, allow_missing=True), newest_first)


def _versions_of(
    table: IcebergTable, rows: "DataFrame", keys: "DataFrame", keep: Keep
) -> "DataFrame":
    """Return a table's rows with any of some keys.

    Usually few match: other columns than the key are only read in partitions with a match.
    """
    of = declared_versions(table).of
    by = table.overwritten_by
    if by is None:
        return with_keys(rows, keys.distinct(), of)
    few = few_keys(table, keys)
    if few is not None:
        matches = rows.where(few_keys_predicate(table, few))
        where, _ = _partitions_of(table, matches, by)
        return matches.where(where)
    locations = keep(key_locations(table, rows, keys.distinct()), eager=True)
    where, location_count = _partitions_of(table, locations, by)
    return with_keys(
        rows.where(where), locations.selectExpr(*map(identifier, of)), of, location_count
    )


def _partitions_of(table: IcebergTable, rows: "DataFrame", by: str) -> tuple[str, int]:
    """Return the SQL predicate of the partitions of some rows, and the number of these rows; no
    restriction for too many partitions.
    """
    column, kind = identifier(by), table.column(by).type
    values = rows.selectExpr(f"{without_zone(column, kind)} AS __value")
    counts = values.groupBy("__value").count().limit(_MOST_PARTITIONS + 1).collect()
    if len(counts) > _MOST_PARTITIONS:
        return "true", BROADCAST_KEY_LIMIT
    rows_by_partition = {row[0]: row[1] for row in counts}
    return in_values(by, rows_by_partition), sum(rows_by_partition.values())


def _prepared(table: IcebergTable, delivered: "DataFrame") -> PreparedFrame:
    known = _known_names(table)
    columns = [identifier(name) for name in delivered.columns if name in known]
    return prepare(table, delivered.selectExpr(*columns)).evaluated()


def _known_names(table: IcebergTable) -> set[str]:
    """Return the columns of the table and its quarantine, and `DELETED`."""
    return {*table.column_names, *SOURCE_COLUMNS, DELETED}


def _newest(
    prepared: PreparedFrame,
    versions: Versions,
    evaluated: "DataFrame",
    order: Sequence[str],
    rank: Literal["rank()", "row_number()"] = "rank()",
) -> "DataFrame":
    """Keep the first row of each key, accepted and newest first, and uncorrected rejected rows.

    A window shuffles less than an aggregate of the greatest version with a struct per row.

    :param order: SQL sort terms of the accepted rows of a key.
    :param rank: whether equal versions are kept, so that they are reported, or only one.
    """
    key = ", ".join(map(identifier, versions.of))
    within = f"PARTITION BY {key} ORDER BY {_REJECTED}, {', '.join(order)}, {_ROLE} DESC"
    newest = {name: identifier(name) for name in versions.newest}
    ranked = evaluated.selectExpr(
        "*",
        f"{rank} OVER ({within}) AS {_RANK}",
        f"first_value({_REJECTED}) OVER ({within}) AS {_NONE_ACCEPTED}",
        f"first_value({order_sql(newest)}) OVER ({within}) AS {_NEWEST}",
    )
    is_newest = f"(NOT {_REJECTED} AND {_RANK} = 1)"
    has_no_key = " OR ".join(f"{identifier(name)} IS NULL" for name in versions.of)
    is_newer = is_newer_sql(newest, _NEWEST)
    is_uncorrected = f"({_REJECTED} AND ({has_no_key} OR {_NONE_ACCEPTED} OR {is_newer}))"
    selected = ranked.where(f"{_ROLE} <> {_RIVAL} AND ({is_newest} OR {is_uncorrected})")
    return selected.selectExpr(*map(identifier, prepared.names))
