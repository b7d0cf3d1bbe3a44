"""Rows of people who were erased stay out of what is computed, also where a source, a backfill or
a past state has them still.

Who is gone is known by keyed hashes of ids, which are computed where the rows are. The key stands
in no plan: Spark shows literals there, and of a frame its columns alone.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from lakehouse.iceberg.erasure.normal_id_sql import normal_id_sql
from lakehouse.iceberg.metadata.arrow_frames import arrow_to_spark
from lakehouse.tables.casts import Cast
from lakehouse.tables.people import names_of
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

    def is_gone(self, names: Iterable[str], value: str) -> datetime | None:
        """Return when a person was erased; None for who was not.

        :param names: all that tables call the column that stands for the person.
        """


@dataclass(frozen=True)
class Moment:
    """The column that tells when a row was made.

    `time_zone` is where text without an offset was written.
    """

    column: str
    time_zone: str = "UTC"


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
    frame: "DataFrame",
    table: IcebergTable,
    gone: Gone,
    *,
    moment: Moment | None = None,
    names: Collection[str] = (),
    unless: str = "false",
) -> WithoutGone:
    """Leave out the rows of people who are gone that were made before their erasure.

    What was made at no moment that is known counts as made before: then all rows of a person
    who is gone are left out. The frame is returned as it is where nobody is gone, or it has no
    column that stands for a person; a row in which that column is empty stays.

    :param frame: rows as delivered, or in the table's types.
    :param moment: when a row was made; left out, the first of the table's `versions.newest`.
    :param names: what other tables call the subject, beside what this one does and did.
    :param unless: a SQL predicate of rows that stay, whosever they are.
    """
    subject = subject_in(frame.columns, table)
    if not gone.erased_at or gone.key is None or subject is None:
        return WithoutGone(frame)
    known = sorted({*_names(table), *(name.lower() for name in names)})
    hashed = _with_hashes(frame, gone.key, subject, known)
    marked = _with_erasure(hashed, gone.erased_at, len(known))
    made_before = _made_before(frame, table, moment)
    is_theirs = f"({_ERASED_AT} IS NOT NULL AND {made_before} AND NOT ({unless}))"
    own = [identifier(name) for name in frame.columns]
    kept, dropped = marked.where(f"NOT {is_theirs}"), marked.where(is_theirs)
    return WithoutGone(kept.selectExpr(*own), dropped.selectExpr(*own))


def subject_in(columns: Iterable[str], table: IcebergTable) -> str | None:
    """Return which of some columns stands for a person, under the name that it has or had in
    the table; None where none does.
    """
    names = _names(table)
    return next((name for name in columns if name.lower() in names), None)


def _names(table: IcebergTable) -> frozenset[str]:
    """Return what the subject of a table is called, and was; empty where it has none."""
    return names_of(table.column(table.subject)) if table.subject else frozenset()


def _with_hashes(frame: "DataFrame", key: bytes, subject: str, names: list[str]) -> "DataFrame":
    """Return the rows with the keyed hash of their person, a column for each name that the
    person may have been erased under.
    """
    import pyarrow as pa
    from pyspark.sql.functions import broadcast

    block = hashlib.sha256(key).digest() if len(key) > _BLOCK_BYTES else key
    block = block.ljust(_BLOCK_BYTES, b"\0")
    pads = [bytes(byte ^ pad for byte in block) for pad in (0x36, 0x5C)]
    arrays = [pa.array([pad], pa.binary()) for pad in pads]
    rows = pa.table(dict(zip((_INNER, _OUTER), arrays, strict=True)))
    padded = arrow_to_spark(frame.sparkSession, rows)
    terms = []
    normal = normal_id_sql(identifier(subject), dict(frame.dtypes)[subject])
    for at, name in enumerate(names):
        prefix = literal(f"{name}\0".encode())
        text = f"encode({normal}, 'UTF-8')"
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
    import pyarrow as pa

    digests = pa.array([*erased_at], pa.binary())
    moments = pa.array([*erased_at.values()], pa.timestamp("us", "UTC"))
    return arrow_to_spark(spark, pa.table({_HMAC: digests, _ERASED_AT: moments}))


def _made_before(frame: "DataFrame", table: IcebergTable, moment: Moment | None) -> str:
    """Return the SQL predicate of the rows that were made before their person's erasure; those
    whose moment cannot be read are among them.
    """
    if moment is None and table.versions:
        moment = Moment(table.versions.newest[0])
    types = dict(frame.dtypes)
    if moment is None or moment.column not in types:
        return "true"
    value, column_type = identifier(moment.column), types[moment.column]
    if column_type == "string":
        delivered = Cast("timestamp", moment.time_zone)
        cast = table.casts.get(moment.column, delivered)
        value, column_type = cast.sql(value), cast.type
    if column_type not in _MOMENTS:
        return "true"
    return f"coalesce(CAST({value} AS TIMESTAMP) < {_ERASED_AT}, true)"
