"""Which of several rows with one key counts, where only a row that the rules accept may
count.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakehouse.errors import FrameMismatch
from lakehouse.iceberg.metadata.frame_joins import together, with_keys
from lakehouse.iceberg.metadata.write_context import Partitions
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.row_version_inputs import (
    EXISTING,
    EXISTING_ELSEWHERE,
    elsewhere,
    has_no_partition,
    versioned_inputs,
)
from lakehouse.iceberg.read.version_keys import (
    among_keys,
    declared_versions,
    few_keys,
    is_newer_sql,
    key_locations,
    order_sql,
)
from lakehouse.iceberg.write.implied_rules import key_text_rule, with_key_text_rule
from lakehouse.iceberg.write.kept_rows import Keep, keep_on_one_machine
from lakehouse.iceberg.write.prepared_frame import (
    BROKEN,
    DELETED,
    PreparedFrame,
    prepare,
    text_keys,
)
from lakehouse.tables.quoting import among, between, identifier, literal, without_zone
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable, Merge, Versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RANK = "__rank"
_REFUSED = "__refused"
_ROLE = "__role"
_RIVAL, _EXISTING_ROW, _DELIVERY = 0, 1, 2
"""What a version may be here; of two that are equal, a row that stands and came again, the one
just evaluated counts.
"""
_MOST_PARTITIONS = 10_000
"""Partitions that a statement names with ease."""
_KEY_TEXT, _FIRST_TEXT = "__key_text", "__first_text"
_NEWER = "__newer"
_NEWEST = "__newest"
_NONE_ACCEPTED = "__none_accepted"
_FILE_ORDER = ("_ingested_at", "_source_modified_at", "_source_file", "_source_row")
"""What orders rows of one key where a table declares no versions: that counts which was delivered
last.
"""


def select_versions(
    table: IcebergTable,
    inputs: Mapping[str, Input],
    compute: "Callable[..., DataFrame]",
    partitions: Partitions | None,
    keep: Keep = keep_on_one_machine,
) -> "Callable[..., DataFrame]":
    """Return a function that computes what another does, and keeps of its rows the newest
    versions; the other itself where no input is of versions.

    :param inputs: as they were declared; the function is given all that is read for them.
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
            other = frames[elsewhere(name)]
            unplaced = has_no_partition(partitions, declared.by or "")
            arrived[name] = arrived[name].unionByName(other.where(unplaced))
            rivals[name] = other.where(f"NOT ({unplaced})")
        return newest_accepted(
            table,
            compute(**arrived),
            rivals=[compute(**rivals)],
            standing=frames[EXISTING],
            elsewhere=frames.get(EXISTING_ELSEWHERE),
            keep=keep,
        )

    return newest_of_partitions


def gives_keys_once(table: IcebergTable, inputs: Mapping[str, Input]) -> bool:
    """Whether each key is there once among the rows that the rules accept, of those that
    `select_versions` keeps: of one order by file there is one first, and of versions that a table
    declares two may be the same.
    """
    return (
        bool(versioned_inputs(inputs))
        and isinstance(table.write, Merge)
        and table.versions is None
    )


def _newest_version(table: IcebergTable, frame: "DataFrame") -> "DataFrame":
    """Keep the newest accepted version of each row: as the table declares it, or else by
    file.
    """
    if table.versions is not None:
        return newest_accepted(table, frame)
    assert isinstance(table.write, Merge)
    missing = [name for name in _FILE_ORDER if name not in frame.columns]
    if missing:
        raise FrameMismatch(
            f"{table.name}: the frame lacks {', '.join(missing)}; expected"
            f" {', '.join(_FILE_ORDER)}, which tell the row of the last file.",
            next_step=(
                "Return these columns too, as they were given: those that the table does not"
                " have are left out."
            ),
        )
    newest = [f"{identifier(name)} DESC" for name in _FILE_ORDER]
    order = newest
    if table.write.within_file == "first":
        order = [*newest[:-1], identifier("_source_row")]
    return first_accepted(table, frame, key=table.write.on, order=order, newest=newest)


def first_accepted(
    table: IcebergTable,
    frame: "DataFrame",
    *,
    key: Sequence[str],
    order: Sequence[str],
    newest: Sequence[str] = (),
) -> "DataFrame":
    """Keep, of the rows that share a key, the first that the table's rules accept, and those
    that they refuse and no accepted row corrects.

    A refused row goes to the quarantine and never displaces an accepted one, and any accepted
    row that is newer corrects it, so that many deliveries taken at once come to the same as one
    after the other. The rows are returned for the table's write alone, cast and evaluated by its
    rules, so that this is done once.

    :param frame: the rows as delivered; columns that the table does not have are left out.
    :param order: SQL sort terms such as `created_at DESC`; a column with a `castable` rule is
        compared in its type.
    :param newest: the same for which of them are newer, newest first, where that is another
        order.
    """
    # What is delivered by the name of the stamp orders rows, and the write fills that itself.
    known = _known_names(table) - {table.stamp}
    others = [name for name in frame.columns if name not in known]
    prepared = _evaluated(prepare(table, frame, others))
    others = [*others, _KEY_TEXT]
    candidates = prepared.frame.selectExpr("*", f"{prepared.refused_predicate} AS {_REFUSED}")
    of_key = f"PARTITION BY {', '.join(map(identifier, key))}"
    newer = (
        f"count(CASE WHEN NOT {_REFUSED} THEN 1 END) OVER ({of_key} ORDER BY"
        f" {', '.join(newest or order)} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    )
    terms, is_first = ["*", f"{newer} AS {_NEWER}"], f"{_NEWER} = 1"
    within = f"{of_key} ORDER BY {', '.join(order)}"
    if newest and [*newest] != [*order]:
        # Only another order takes another sort.
        within = f"{of_key}, {_REFUSED} ORDER BY {', '.join(order)}"
        terms, is_first = [*terms, f"row_number() OVER ({within}) AS {_RANK}"], f"{_RANK} = 1"
    accepted_text = f"CASE WHEN NOT {_REFUSED} THEN {_KEY_TEXT} END"
    terms += _first_text(prepared, accepted_text, within)
    has_no_key = " OR ".join(f"{identifier(name)} IS NULL" for name in key)
    is_other = f"(NOT {_REFUSED} AND NOT {is_first} AND {_has_other_text(prepared)})"
    ranked = candidates.selectExpr(*terms).where(
        f"if({_REFUSED}, {has_no_key} OR {_NEWER} = 0, {is_first} OR {is_other})"
    )
    return ranked.selectExpr(*_kept_columns(prepared, is_other, others))


def newest_accepted(
    table: IcebergTable,
    frame: "DataFrame",
    *,
    rivals: "Sequence[DataFrame]" = (),
    standing: "DataFrame | None" = None,
    elsewhere: "DataFrame | None" = None,
    keep: Keep = keep_on_one_machine,
) -> "DataFrame":
    """Keep of each thing's versions the newest that the table's rules accept, and the refused
    ones not yet corrected.

    A refused version is corrected by an accepted one that is not older, by all that orders
    versions, whichever came first: so it comes to the same whether they are computed in one run
    or in several. What a version is, and which is newest, is the table's `versions`. The rows
    are returned for the table's write alone, cast and evaluated by its rules, so that this is
    done once.

    :param frame: the rows as delivered; columns that the table does not have are left out.
    :param rivals: rows of other partitions, as delivered, that displace and correct those of
        `frame` but are not kept.
    :param standing: rows of the table itself in the run's partitions, which stay unless a newer
        version displaces them.
    :param elsewhere: rows of the table itself outside of the run's partitions, which displace
        and correct.
    :param keep: keeps the keys and partitions of those of them that are versions of a row.
    """
    versions = declared_versions(table)
    order = [*map(identifier, dict.fromkeys((*versions.of, *versions.newest)))]
    mine = _prepared(table, frame)
    seen = [
        mine.frame.selectExpr(
            "*", f"{mine.refused_predicate} AS {_REFUSED}", f"{_DELIVERY} AS {_ROLE}"
        )
    ]
    for rival in rivals:
        other = _prepared(table, rival)
        names = [*order, *([_KEY_TEXT] if _KEY_TEXT in other.names else [])]
        seen += [
            other.frame.selectExpr(
                *names, f"{other.refused_predicate} AS {_REFUSED}", f"{_RIVAL} AS {_ROLE}"
            )
        ]
    if standing is not None:
        seen += [
            mine.known(standing).selectExpr(
                "*", f"false AS {_REFUSED}", f"{_EXISTING_ROW} AS {_ROLE}"
            )
        ]
    if elsewhere is not None:
        keys = mine.frame.selectExpr(*map(identifier, versions.of))
        relevant = _versions_of(table, elsewhere, keys, keep)
        seen += [relevant.selectExpr(*order, f"false AS {_REFUSED}", f"{_RIVAL} AS {_ROLE}")]
    return _newest(mine, versions, together(seen, allow_missing=True))


def _versions_of(
    table: IcebergTable, rows: "DataFrame", keys: "DataFrame", keep: Keep
) -> "DataFrame":
    """Return a table's rows that have any of some keys.

    Few have: so the key alone is read of all rows, and what else tells a version of those
    partitions that have one.
    """
    of = declared_versions(table).of
    by = table.overwritten_by
    if by is None:
        return with_keys(rows, keys.distinct(), of)
    few = few_keys(table, keys)
    if few is not None:
        found = rows.where(among_keys(table, few))
        where, _ = _partitions_of(table, found, by)
        return found.where(where)
    met = keep(key_locations(table, rows, keys.distinct()), eager=True)
    where, met_rows = _partitions_of(table, met, by)
    return with_keys(rows.where(where), met.selectExpr(*map(identifier, of)), of, met_rows)


def _partitions_of(table: IcebergTable, rows: "DataFrame", by: str) -> tuple[str, int]:
    """Return the SQL predicate of the partitions that some of a table's rows lie in, and how
    many rows these are; of many partitions, that of all between the first and the last.
    """
    column, kind = identifier(by), table.column(by).type
    values = rows.selectExpr(f"{without_zone(column, kind)} AS __value")
    counts = values.groupBy("__value").count().limit(_MOST_PARTITIONS + 1).collect()
    if len(counts) <= _MOST_PARTITIONS:
        rows_by_partition = {row[0]: row[1] for row in counts}
        return among(by, rows_by_partition), sum(rows_by_partition.values())
    least, greatest = (without_zone(f"{end}({column})", kind) for end in ("min", "max"))
    spread = rows.selectExpr(least, greatest, f"count_if({column} IS NULL)", "count(1)").first()
    assert spread is not None
    first, last, unplaced, count = spread
    within = between(by, first, last)
    return f"({within} OR {column} IS NULL)" if unplaced else within, count


def _prepared(table: IcebergTable, delivered: "DataFrame") -> PreparedFrame:
    known = _known_names(table)
    columns = [identifier(name) for name in delivered.columns if name in known]
    return _evaluated(prepare(table, delivered.selectExpr(*columns)))


def _evaluated(prepared: PreparedFrame) -> PreparedFrame:
    """Return a frame with its rules evaluated, and with the texts of its key that are not written
    as the value is, such as `+49`. Those of a table's own rows are not known, and NULL.
    """
    names = text_keys(prepared.table, prepared.frame)
    if not names:
        return prepared.evaluated()
    texts = []
    for name in names:
        value = f"CAST({identifier(name)} AS string)"
        texts += [literal(name), f"nullif(trim({prepared.delivered_sql(name)}), {value})"]
    frame = prepared.frame.selectExpr("*", f"named_struct({', '.join(texts)}) AS {_KEY_TEXT}")
    table, names = with_key_text_rule(prepared.table, names), [*prepared.names, _KEY_TEXT]
    return replace(prepared, table=table, frame=frame, names=names).evaluated()


def _first_text(prepared: PreparedFrame, text: str, within: str) -> list[str]:
    """Return the SQL of the key's text in the row that counts, where the key is cast from text."""
    if _KEY_TEXT not in prepared.names:
        return []
    return [f"first_value({text}, true) OVER ({within}) AS {_FIRST_TEXT}"]


def _has_other_text(prepared: PreparedFrame) -> str:
    if _KEY_TEXT not in prepared.names:
        return "false"
    are_known = f"{_KEY_TEXT} IS NOT NULL AND {_FIRST_TEXT} IS NOT NULL"
    return f"{are_known} AND NOT ({_KEY_TEXT} <=> {_FIRST_TEXT})"


def _kept_columns(prepared: PreparedFrame, is_other: str, others: Sequence[str]) -> list[str]:
    """Return the columns of an evaluated frame; rows of another text of their key break the rule
    on that, and are shown with the text.
    """
    rule = key_text_rule(prepared.table)
    changed: dict[str, str] = {}
    if rule and rule.name in prepared.bits:
        changed[BROKEN] = (
            f"if({is_other}, {BROKEN} | {1 << prepared.bits[rule.name]}L, {BROKEN})"
        )
        for name in rule.columns:
            kept, value = prepared.delivered[name], f"CAST({identifier(name)} AS string)"
            text = f"coalesce({_KEY_TEXT}.{identifier(name)}, {value})"
            changed[kept] = f"if({is_other}, {text}, {identifier(kept)})"
    names = (name for name in prepared.names if name not in others)
    return [f"{changed.get(name, identifier(name))} AS {identifier(name)}" for name in names]


def _known_names(table: IcebergTable) -> set[str]:
    """Return the columns that the table, or its quarantine, keeps, and what says of a version that
    the row shall go: where the table is not merged, that is refused rather than taken for a row.
    """
    return {*table.column_names, *SOURCE_COLUMNS, DELETED}


def _newest(prepared: PreparedFrame, versions: Versions, evaluated: "DataFrame") -> "DataFrame":
    """Keep the rows that rank first of their key, accepted before refused and newest first, and
    the refused that stay.

    An order takes less to shuffle than the greatest version of each key would, which is made of
    each row before that.
    """
    order = [f"{identifier(name)} DESC" for name in versions.newest]
    key = ", ".join(map(identifier, versions.of))
    within = f"PARTITION BY {key} ORDER BY {_REFUSED}, {', '.join(order)}, {_ROLE} DESC"
    newest = {name: identifier(name) for name in versions.newest}
    ranked = evaluated.selectExpr(
        "*",
        f"rank() OVER ({within}) AS {_RANK}",
        f"first_value({_REFUSED}) OVER ({within}) AS {_NONE_ACCEPTED}",
        f"first_value({order_sql(newest)}) OVER ({within}) AS {_NEWEST}",
        *_first_text(prepared, _KEY_TEXT, within),
    )
    is_newest = f"(NOT {_REFUSED} AND {_RANK} = 1)"
    has_no_key = " OR ".join(f"{identifier(name)} IS NULL" for name in versions.of)
    is_newer = is_newer_sql(newest, _NEWEST)
    is_uncorrected = f"({_REFUSED} AND ({has_no_key} OR {_NONE_ACCEPTED} OR {is_newer}))"
    is_other = (
        f"({_ROLE} = {_DELIVERY} AND NOT {_REFUSED} AND {_RANK} > 1 AND"
        f" {_has_other_text(prepared)})"
    )
    kept = ranked.where(
        f"{_ROLE} <> {_RIVAL} AND ({is_newest} OR {is_uncorrected} OR {is_other})"
    )
    return kept.selectExpr(*_kept_columns(prepared, is_other, [_KEY_TEXT]))
