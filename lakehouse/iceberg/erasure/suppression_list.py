"""The suppression list: a row filter that keeps rows of erased data subjects out of what is
computed, landed and read, also if a source, a backfill or a past state still contains them.

The list contains keyed hashes of ids. Spark computes the same hashes of the rows. The key is in
no query plan: Spark shows literals in a plan, and of a frame only its columns.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from lakehouse.iceberg.frames.frames import arrow_to_spark
from lakehouse.iceberg.read.inputs import Input
from lakehouse.tables.casts import Cast
from lakehouse.tables.person import INTEGER, names_of, person_hmac
from lakehouse.tables.quoting import identifier, literal
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Compute = Callable[..., "DataFrame"]
_BLOCK_BYTES = 64
"""Block size of SHA-256, to which HMAC pads its key (RFC 2104)."""
_INNER, _OUTER, _HMAC, _ERASED_AT = "__inner", "__outer", "__hmac", "__erased_at"
_TIMESTAMPS = ("timestamp", "timestamp_ntz", "date")
_BLANK = r"[\\s\\p{Z}\\x1C-\\x1F\\x85]+"
"""What Python strips: Java's `\\s` lacks the separators of files, groups, records and units, and
the next line.
"""
_SPACE = f"^{_BLANK}|{_BLANK}$"


@dataclass(frozen=True)
class ErasedIds:
    """The ids of erased data subjects, as keyed hashes; none by default."""

    key: bytes | None = field(default=None, repr=False)
    """Key of the hashes; None if no one was erased."""
    erased_at: Mapping[bytes, datetime] = field(default_factory=dict, repr=False)
    """When a data subject was last erased, by keyed hash."""

    def erasure_time(self, names: Iterable[str], value: str) -> datetime | None:
        """Return when a data subject was erased; None if not.

        :param names: all names of the subject column in any table.
        :param value: an id, in any form.
        """
        if self.key is None:
            return None
        digests = [bytes.fromhex(person_hmac(self.key, one.lower(), value)) for one in names]
        found = [self.erased_at[digest] for digest in digests if digest in self.erased_at]
        return max(found, default=None)


@dataclass(frozen=True)
class RowTimestamp:
    """The column that contains when a row was created.

    `time_zone` applies to text without an offset.
    """

    column: str
    time_zone: str = "UTC"


@dataclass(frozen=True)
class SuppressionList:
    """Erased data subjects, and the columns that identify them; empty by default."""

    read: Callable[[], ErasedIds] = ErasedIds
    """Reads the current ids: a person can be erased while a run is active."""
    tables: Mapping[str, IcebergTable] = field(default_factory=dict)
    """The declared tables, by name."""
    names: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By table, all names of its subject column in any table."""
    timestamps: Mapping[str, RowTimestamp] = field(default_factory=dict)
    """By table, if it is not the first of its `versions.newest`."""

    def filter(self) -> "RowFilter":
        """Read the list for one write or read."""
        return RowFilter(self, self.read())

    def names_of(self, table: str, subject: str) -> Collection[str]:
        """Return all names of the subject column of a table."""
        return {subject, *self.names.get(table, ())}


NO_SUPPRESSION = SuppressionList()


@dataclass(frozen=True)
class FilteredRows:
    """The rows of a frame that stay, and those of erased data subjects."""

    rows: "DataFrame"
    suppressed: "DataFrame | None" = None
    """None if there cannot be any."""


@dataclass(frozen=True)
class RowFilter:
    """Excludes rows of erased data subjects from one write or read, and counts them. With an empty
    list, each frame is returned as it is.
    """

    suppression: SuppressionList
    ids: ErasedIds
    by_input: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Table and number of suppressed rows, by input; each input is counted once."""

    @property
    def is_active(self) -> bool:
        """Whether anyone was erased."""
        return bool(self.ids.erased_at)

    @property
    def rows(self) -> dict[str, int]:
        """The number of suppressed rows so far, by table."""
        rows: dict[str, int] = {}
        for table, count in self.by_input.values():
            rows[table] = rows.get(table, 0) + count
        return rows

    def split(
        self, table: IcebergTable, frame: "DataFrame", *, unless: str = "false"
    ) -> FilteredRows:
        """Separate the rows of erased data subjects that were created before their erasure.

        A row without a readable timestamp counts as created before. The frame is returned as it
        is if it has no subject column; a row without a subject stays.

        :param frame: rows as delivered, or in the table's types.
        :param unless: SQL predicate of rows that stay in any case.
        """
        subject = subject_in(frame.columns, table)
        if not self.is_active or self.ids.key is None or subject is None:
            return FilteredRows(frame)
        others = self.suppression.names.get(table.name, ())
        names = sorted({*_names(table), *(name.lower() for name in others)})
        hashed = _with_hashes(frame, self.ids.key, subject, names)
        marked = _with_erasure(hashed, self.ids.erased_at, len(names))
        is_before = _is_before(frame, table, self.suppression.timestamps.get(table.name))
        is_suppressed = f"({_ERASED_AT} IS NOT NULL AND {is_before} AND NOT ({unless}))"
        own = [identifier(name) for name in frame.columns]
        return FilteredRows(
            marked.where(f"NOT {is_suppressed}").selectExpr(*own),
            marked.where(is_suppressed).selectExpr(*own),
        )

    def exclude(
        self,
        table: IcebergTable,
        frame: "DataFrame",
        *,
        read_as: str = "",
        unless: str = "false",
    ) -> "DataFrame":
        """Return a frame without suppressed rows, and count these.

        Identifying columns are read once more. Without such rows, the frame is unchanged.

        :param read_as: name of the input; empty for the result of a function.
        """
        split = self.split(table, frame, unless=unless)
        # No job is started if there cannot be any.
        rows = 0 if split.suppressed is None else split.suppressed.count()
        if not rows:
            return frame
        self.by_input.setdefault(read_as, (table.name, rows))
        return split.rows

    def wrap(self, inputs: Mapping[str, Input], compute: Compute) -> Compute:
        """Return a function that computes from inputs filtered by the list.

        Existing rows of the target are not filtered, since the erasure deleted rows there, nor
        are keys of changed rows, for which the target reads the rows.
        """
        if not self.is_active:
            return compute

        def computed(**frames: "DataFrame") -> "DataFrame":
            kept = dict(frames)
            for name, declared in inputs.items():
                source = self.suppression.tables.get(declared.table)
                is_unfiltered = declared.mode in ("changed_keys", "existing_rows")
                if source is not None and name in frames and not is_unfiltered:
                    kept[name] = self.exclude(source, frames[name], read_as=name)
            return compute(**kept)

        return computed


def subject_in(columns: Iterable[str], table: IcebergTable) -> str | None:
    """Return which of some columns is the subject of a table, by its current or a former name."""
    names = _names(table)
    return next((name for name in columns if name.lower() in names), None)


def _names(table: IcebergTable) -> frozenset[str]:
    return names_of(table.column(table.subject)) if table.subject else frozenset()


def normal_id_sql(column: str, column_type: str = "string") -> str:
    """Return SQL of the normal form of an id, as text: the same as `normal_id`.

    :param column: SQL of a value of any type.
    :param column_type: its type; Spark writes a large float with an exponent.
    """
    if column_type in ("float", "double"):
        text = f"CAST(try_cast({column} AS DECIMAL(38, 6)) AS STRING)"
        column = f"coalesce(TRIM(TRAILING '0' FROM {text}), CAST({column} AS STRING))"
    text = f"regexp_replace(CAST({column} AS STRING), '{_SPACE}', '')"
    return f"regexp_replace({text}, '{INTEGER}', '$1$2')"


def _with_hashes(frame: "DataFrame", key: bytes, subject: str, names: list[str]) -> "DataFrame":
    """Add the keyed hash of the data subject, a column for each name of the subject column."""
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
    """Add the timestamp of the data subject's last erasure, or NULL.

    One join for each name: a condition with OR would compare each row with each id.
    """
    import pyarrow as pa
    from pyspark.sql.functions import broadcast, expr

    digests = pa.array([*erased_at], pa.binary())
    timestamps = pa.array([*erased_at.values()], pa.timestamp("us", "UTC"))
    ids_table = pa.table({_HMAC: digests, _ERASED_AT: timestamps})
    ids = arrow_to_spark(hashed.sparkSession, ids_table)
    marked = hashed
    for at in range(names):
        of_name = ids.selectExpr(f"{_HMAC} AS __of{at}", f"{_ERASED_AT} AS {_ERASED_AT}{at}")
        same = expr(f"{_HMAC}{at} = __of{at}")
        marked = marked.join(broadcast(of_name), same, "left")
    columns = [f"{_ERASED_AT}{at}" for at in range(names)]
    # `greatest` takes two arguments at least.
    return marked.selectExpr(
        "*", f"greatest({', '.join([*columns, columns[0]])}) AS {_ERASED_AT}"
    )


def _is_before(frame: "DataFrame", table: IcebergTable, created: RowTimestamp | None) -> str:
    """Return SQL of whether a row precedes its person's erasure; true if unknown."""
    if created is None and table.versions:
        created = RowTimestamp(table.versions.newest[0])
    types = dict(frame.dtypes)
    if created is None or created.column not in types:
        return "true"
    value, column_type = identifier(created.column), types[created.column]
    if column_type == "string":
        delivered = Cast("timestamp", created.time_zone)
        cast = table.casts.get(created.column, delivered)
        value, column_type = cast.sql(value), cast.type
    if column_type not in _TIMESTAMPS:
        return "true"
    return f"coalesce(CAST({value} AS TIMESTAMP) < {_ERASED_AT}, true)"
