"""Rows of people who were erased stay out of what is computed, also where a source, a backfill or
a past state has them still.

Who is gone is known by keyed hashes of ids, which are computed where the rows are. The key stands
in no plan: Spark shows literals there, and of a frame its columns alone.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from lakehouse.iceberg.erasure.normal_id_sql import normal_id_sql
from lakehouse.iceberg.read.inputs import Input
from lakehouse.tables.quoting import identifier, literal
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BLOCK_BYTES = 64
"""Bytes that SHA-256 works on at a time, to which HMAC fills up its key (RFC 2104)."""
_INNER, _OUTER, _HMAC, _ERASED_AT = "__inner", "__outer", "__hmac", "__erased_at"
_MOMENTS = ("timestamp", "timestamp_ntz", "date")


class Gone(Protocol):
    """Who is gone."""

    @property
    def key(self) -> bytes | None:
        """Key of the hashes; None where nobody is gone."""

    @property
    def erased_at(self) -> Mapping[bytes, datetime]:
        """When people were erased, by their keyed hash."""


@dataclass(frozen=True)
class WithoutGone:
    """The rows of a frame but those of people who were gone before they were made."""

    rows: "DataFrame"
    dropped: "DataFrame | None" = None
    """The others; None where there cannot be any, so that nothing is to be counted."""

    def count_dropped(self) -> int:
        """Return how many rows are left out; reads the frame, but where there can be none."""
        return 0 if self.dropped is None else self.dropped.count()


def without_gone(
    frame: "DataFrame", table: IcebergTable, gone: Gone, *, moment: str | None = None
) -> WithoutGone:
    """Leave out the rows of people who are gone that were made before their erasure.

    What was made at no moment that is known counts as made before: then all rows of a person
    who is gone are left out, until a person allows them. The frame is returned as it is where
    nobody is gone, or it has no column that stands for a person.

    :param frame: rows as delivered, or in the table's types.
    :param moment: the column that tells when a row was made; left out, the first of the table's
        `versions.newest`.
    """
    subject = _subject_in(frame, table)
    if not gone.erased_at or gone.key is None or subject is None:
        return WithoutGone(frame)
    names = sorted(_names(table))
    hashed = _with_hashes(frame, gone.key, subject, names)
    marked = _with_erasure(hashed, gone.erased_at, len(names))
    is_theirs = f"({_ERASED_AT} IS NOT NULL AND {_made_before(frame, table, moment)})"
    own = [identifier(name) for name in frame.columns]
    kept, dropped = marked.where(f"NOT {is_theirs}"), marked.where(is_theirs)
    return WithoutGone(kept.selectExpr(*own), dropped.selectExpr(*own))


def compute_without_gone(
    compute: "Callable[..., DataFrame]",
    inputs: Mapping[str, Input],
    tables: Mapping[str, IcebergTable],
    gone: Gone,
    tell: Callable[[str, int], None],
    *,
    moments: Mapping[str, str] | None = None,
) -> "Callable[..., DataFrame]":
    """Return a function that computes what another does from its inputs without the rows of
    people who are gone; the function itself where nobody is.

    Of each input that may have such rows, the columns that tell are read once more, to count
    them; where there are none, the function is given the frame as it was. Keys of changed rows
    are let through, since what the target makes of them is read of rows.

    :param tables: the declared tables by name; an input of another one is let through.
    :param tell: is told the table and how many rows of it were left out, where there are any.
    :param moments: by table, the column that tells when a row was made, where that is not the
        first of its `versions.newest`.
    """
    if not gone.erased_at:
        return compute

    def computed(**frames: "DataFrame") -> "DataFrame":
        kept = dict(frames)
        for name, declared in inputs.items():
            source = tables.get(declared.table)
            if source is None or name not in frames or declared.mode == "changed_keys":
                continue
            moment = (moments or {}).get(source.name)
            left = without_gone(frames[name], source, gone, moment=moment)
            rows = left.count_dropped()
            if rows:
                tell(source.name, rows)
                kept[name] = left.rows
        return compute(**kept)

    return computed


def _names(table: IcebergTable) -> set[str]:
    """Return what the subject of a table is called, and was; empty where it has none."""
    if table.subject is None:
        return set()
    column = table.column(table.subject)
    return {name.lower() for name in (column.name, *column.renamed_from)}


def _subject_in(frame: "DataFrame", table: IcebergTable) -> str | None:
    names = _names(table)
    return next((name for name in frame.columns if name.lower() in names), None)


def _with_hashes(frame: "DataFrame", key: bytes, subject: str, names: list[str]) -> "DataFrame":
    """Return the rows with the keyed hash of their person, a column for each name that the
    person may have been erased under.
    """
    from pyspark.sql.functions import broadcast

    block = hashlib.sha256(key).digest() if len(key) > _BLOCK_BYTES else key
    block = block.ljust(_BLOCK_BYTES, b"\0")
    pads = [bytes(byte ^ pad for byte in block) for pad in (0x36, 0x5C)]
    padded = frame.sparkSession.createDataFrame(
        [(bytearray(pads[0]), bytearray(pads[1]))], f"{_INNER} binary, {_OUTER} binary"
    )
    terms = []
    for at, name in enumerate(names):
        prefix = literal(f"{name}\0".encode())
        text = f"encode({normal_id_sql(identifier(subject))}, 'UTF-8')"
        inner = f"unhex(sha2(concat({_INNER}, {prefix}, {text}), 256))"
        terms.append(f"unhex(sha2(concat({_OUTER}, {inner}), 256)) AS {_HMAC}{at}")
    return frame.crossJoin(broadcast(padded)).selectExpr("*", *terms)


def _with_erasure(
    hashed: "DataFrame", erased_at: Mapping[bytes, datetime], names: int
) -> "DataFrame":
    """Return the rows with the moment of their person's last erasure; NULL for who was not.

    One join for each name: a condition that has several with OR would compare each row with
    everybody.
    """
    from pyspark.sql.functions import broadcast, expr

    people = _people(hashed.sparkSession, erased_at)
    marked = hashed
    for at in range(names):
        of_name = people.selectExpr(f"{_HMAC} AS __of{at}", f"{_ERASED_AT} AS {_ERASED_AT}{at}")
        same = expr(f"{_HMAC}{at} = __of{at}")
        marked = marked.join(broadcast(of_name), same, "left")
    moments = [f"{_ERASED_AT}{at}" for at in range(names)]
    # It takes two at least.
    return marked.selectExpr(
        "*", f"greatest({', '.join([*moments, moments[0]])}) AS {_ERASED_AT}"
    )


def _people(spark: "SparkSession", erased_at: Mapping[bytes, datetime]) -> "DataFrame":
    rows = [(bytearray(digest), at) for digest, at in erased_at.items()]
    return spark.createDataFrame(rows, f"{_HMAC} binary, {_ERASED_AT} timestamp")


def _made_before(frame: "DataFrame", table: IcebergTable, moment: str | None) -> str:
    """Return the SQL predicate of the rows that were made before their person's erasure; those
    whose moment cannot be read are among them.
    """
    declared = table.versions.newest[0] if table.versions else None
    column = moment or declared
    types = dict(frame.dtypes)
    if column is None or column not in types:
        return "true"
    value = identifier(column)
    column_type = types[column]
    if column_type == "string" and column in table.casts:
        value = table.casts[column].sql(value)
        column_type = str(table.casts[column].type)
    if column_type not in _MOMENTS:
        return "true"
    return f"coalesce(CAST({value} AS TIMESTAMP) < {_ERASED_AT}, true)"
