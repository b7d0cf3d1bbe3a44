"""What a table declares, as values: its columns, how it is written, its rules and its layout,
and what follows.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from typing import Literal

from lakehouse.errors import DeclarationError
from lakehouse.tables import types
from lakehouse.tables.castable_rule import CastableRule
from lakehouse.tables.casts import Cast
from lakehouse.tables.column import Column, tuple_of
from lakehouse.tables.partitioning import PartitionField, SortField
from lakehouse.tables.rule import Rule
from lakehouse.tables.time_windows import TimeWindows
from lakehouse.tables.upkeep import Upkeep, UpkeepPolicy
from lakehouse.tables.write_modes import (
    Append,
    Merge,
    Overwrite,
    OverwritePartitions,
    Versions,
    WriteMode,
)

RowLevel = Literal["copy-on-write", "merge-on-read"]
OnErasure = Literal["recompute", "keep"]
SOURCE_KEY = ("_source_file", "_source_sha256")
"""The columns that say which delivery a row came with."""
SOURCE_COLUMNS = (*SOURCE_KEY, "_source_row")
"""The columns that say which delivered row a row is."""


@dataclass(frozen=True)
class TableDeclaration:
    """The parts of a table's declaration and what each implies; whether they agree is checked
    by `IcebergTable`.
    """

    name: str
    """`namespace.table`, which is also the asset key."""
    comment: str
    """What the table is, in the catalog and in Dagster."""
    columns: Sequence[Column]
    """In the order that readers see them in."""
    write: WriteMode
    """What a write does to the rows that the table has: `Append`, `Overwrite`, `by_day` and the
    like, `OverwritePartitions` or `Merge`.
    """
    partitioning: Sequence[str] = ()
    """How its files are parted: a column, `days(at)`, `hours(at)`, `months(at)`, `years(at)`,
    `bucket(16, id)`, `truncate(4, code)`. A change waits for `lakehouse apply`.
    """
    rules: Sequence[Rule] = ()
    """What must hold of it; each is a check of its name in Dagster."""
    quarantine_name: str | None = None
    """Where refused rows go; `<name>_quarantine` where it is left out."""
    max_refused_share: float | None = None
    """Share of the rows of a write above which nothing is published; left out, half of 100 rows
    at the first one.
    """
    versions: Versions | None = None
    """Which of several rows of one key counts, where its source writes rows again."""
    subject: str | None = None
    """The key column that stands for a person."""
    no_subject: str | None = None
    """Why the table has no subject, though it has personal columns, or columns that stand for a
    person where it reads; those values are then erased one by one.
    """
    on_erasure: OnErasure = "recompute"
    """What becomes of a table without a subject when a person is erased from what it is computed
    from: it is computed anew, or kept as it is.
    """
    owner: str | None = None
    """Whose it is: an e-mail address, or the name of a team."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Tags of its asset in Dagster."""
    sort_order: Sequence[str] = ()
    """How rows are sorted within a file that is written, such as `at desc`, `id nulls last`."""
    row_level: RowLevel | None = None
    """How rows are changed: by writing their files anew, or by delete files. Left out, a merged
    table changes them as its size and their number have it (`lakehouse.tables.row_level`), and
    any other by copy-on-write.
    """
    target_file_mb: int = 128
    """Size of a file that is aimed at, in megabytes of 2^20 bytes."""
    fanout: bool = False
    """Whether rows are written as they come, and not sorted by partition first.

    A task then keeps one file open for each partition that it has rows of, which costs a
    megabyte or more each: a delivery of thousands of days takes gigabytes, however small it is.
    """
    bloom_filters: Sequence[str] = ()
    """Columns of which each file tells which values it has not, for lookups of single values."""
    file_format: Literal["parquet", "orc", "avro"] = "parquet"
    """Of what kind files are that are written from now on. The rows of `avro` nothing here reads
    without Spark; DuckDB and Polars read `parquet` alone.
    """
    format_version: int = 2
    """Of Iceberg: 2, or 3, which not every engine reads and a table never leaves."""
    location: str | None = None
    """Where its files are; in the warehouse, in a folder of its own, where it is left out."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Further properties of Iceberg."""
    dropped: Sequence[str] = ()
    """Columns that the table once had and shall lose."""
    upkeep: Upkeep = field(default_factory=Upkeep)
    """What differs from the upkeep of its layer."""
    freshness: timedelta | None = None
    """How old the last write may be before the table counts as late."""
    rows_of: "TableDeclaration | None" = field(default=None, repr=False)
    """The table that each row comes from, such as the one that a feed lands in: a column that is
    text there is read by its type, and a row whose text cannot be read is quarantined
    (`castable`). Docs, personal columns and the subject, or why there is none, are as there where
    they are left out.
    """
    source_columns: bool | None = None
    """Whether the columns that say which delivered row each row is come from `rows_of` by
    themselves. Left out, they do where rows are appended or are versions.
    """
    time_zone: str | None = None
    """Where moments without an offset were written, and whose days it is written by; that of
    `rows_of`, or UTC. What `castable` and `dated` among its rules say is their own.
    """

    def __post_init__(self) -> None:
        for name in ("columns", "rules"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in ("partitioning", "sort_order", "bloom_filters", "dropped"):
            object.__setattr__(self, name, tuple_of(getattr(self, name)))
        object.__setattr__(self, "tags", dict(self.tags))
        object.__setattr__(self, "properties", dict(self.properties))

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def namespace(self) -> str:
        """The layer that the table is in."""
        return self.name.split(".")[0]

    @property
    def short_name(self) -> str:
        """The name without its layer."""
        return self.name.split(".")[1]

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """Names, in order."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """Return a column by name.

        :raises KeyError: when there is none.
        """
        return {column.name: column for column in self.columns}[name]

    @cached_property
    def partition_fields(self) -> tuple[PartitionField, ...]:
        """The partition spec, parsed."""
        return tuple(PartitionField.parse(text) for text in self.partitioning)

    @cached_property
    def sort_fields(self) -> tuple[SortField, ...]:
        """The sort order, parsed."""
        return tuple(SortField.parse(text) for text in self.sort_order)

    @cached_property
    def row_rules(self) -> tuple[Rule, ...]:
        """The rules that a single row can break."""
        return tuple(rule for rule in self.rules if rule.is_row_rule)

    @cached_property
    def quarantining_rules(self) -> tuple[Rule, ...]:
        """The rules that send a row to the quarantine."""
        return tuple(rule for rule in self.rules if rule.on_failure == "quarantine")

    @cached_property
    def casts(self) -> Mapping[str, Cast]:
        """How a column is read from what is delivered, by column, where a rule says so."""
        return {rule.columns[0]: rule.cast for rule in self.rules if rule.cast}

    @cached_property
    def read_from_text(self) -> frozenset[str]:
        """The columns that are read by their type, and from nothing but text."""
        return frozenset(
            rule.columns[0]
            for rule in self.rules
            if isinstance(rule, CastableRule) and rule.follows_from_type
        )

    def cast_sql(self, column: str, raw: str) -> str:
        """Return SQL for a delivered value in its column's type; NULL where it cannot be read.

        :param raw: SQL of the delivered value.
        """
        if column in self.casts:
            return self.casts[column].quick_sql(raw)
        return f"try_cast({raw} AS {self.column(column).type})"

    def broken_by(self, rule: Rule) -> str:
        """Return the SQL predicate of the table's rows that break a row rule.

        None breaks one that only says how its column is read: that was done when the row came.
        """
        if rule.cast and types.parse(self.column(rule.columns[0]).type) == types.parse(
            rule.cast.type
        ):
            return "false"
        return rule.predicate()

    @cached_property
    def profiled_columns(self) -> tuple[str, ...]:
        """What each write measures; not the stamp, which no row is delivered with."""
        return tuple(
            column.name
            for column in self.columns
            if column.profiled and column.name != self.stamp
        )

    @property
    def overwritten_by(self) -> str | None:
        """The column that it is overwritten by partitions of; None for tables that are written
        otherwise.
        """
        return self.write.by if isinstance(self.write, OverwritePartitions) else None

    @property
    def windows(self) -> TimeWindows | None:
        """The windows of time that it is overwritten by; None where it is written otherwise, or
        its asset names the partitions.
        """
        if not isinstance(self.write, OverwritePartitions) or self.write.windows is None:
            return None
        zone = self.write.windows.time_zone or self.wall_time_zone
        return replace(self.write.windows, time_zone=zone)

    @cached_property
    def telling_columns(self) -> frozenset[str]:
        """What tells a merge which row shall go; empty where it is written otherwise."""
        if not isinstance(self.write, Merge):
            return frozenset()
        of = self.versions.of if self.versions else ()
        return frozenset((*self.write.on, *self.write.prune_by, *of))

    @property
    def version_key(self) -> tuple[str, ...]:
        """The columns whose values versions of a row have in common; a merge's key without
        `versions`.
        """
        if self.versions:
            return tuple(self.versions.of)
        return tuple(self.write.on) if isinstance(self.write, Merge) else ()

    @property
    def wall_time_zone(self) -> str:
        """The time zone of moments without an offset, and of days."""
        if self.time_zone is not None:
            return self.time_zone
        return self.rows_of.wall_time_zone if self.rows_of else "UTC"

    @property
    def stamp(self) -> str | None:
        """The column that a merge fills itself; None where there is none."""
        return self.write.stamp if isinstance(self.write, Merge) else None

    @cached_property
    def personal_columns(self) -> frozenset[str]:
        """What identifies a person directly."""
        return frozenset(column.name for column in self.columns if column.personal)

    @cached_property
    def masked_columns(self) -> frozenset[str]:
        """What is masked wherever rows are shown: what identifies a person, or stands for
        one.
        """
        return self.personal_columns | ({self.subject} if self.subject else set())

    @property
    def holds_personal_data(self) -> bool:
        """Whether its rows are about people, so that not all of what stands in them may be
        shown.
        """
        return bool(self.masked_columns)

    @cached_property
    def once_by(self) -> tuple[str, ...]:
        """The columns that an append is made only once by; empty where each run adds its
        rows.
        """
        if not isinstance(self.write, Append):
            return ()
        if self.write.once_by is not None:
            return tuple(self.write.once_by)
        return SOURCE_KEY

    @property
    def is_log_of_runs(self) -> bool:
        """Whether each run appends rows of its own that nothing audits, as to the tables of
        `monitoring`.
        """
        return self.once_by == ("run_id",) and not self.rules

    @cached_property
    def declaration_hash(self) -> str:
        """A digest of what decides the table's rows, and of nothing else; each snapshot is
        stamped with it.

        Columns and types, write mode, rules that keep rows or a write back, versions and
        partitioning: the first run after one of them changed computes its partitions in full, and
        none does after an owner or a comment did.
        """
        decisive = (
            sorted((column.name, column.type) for column in self.columns),
            _of_write(self.write),
            sorted(
                _of_rule(rule)
                for rule in self.rules
                if rule.is_declared and (rule.on_failure == "quarantine" or rule.can_block)
            ),
            (*self.versions.of, "newest", *self.versions.newest) if self.versions else (),
            self.partitioning,
        )
        return "rows:" + hashlib.sha256(repr(decisive).encode()).hexdigest()[:16]

    @property
    def upkeep_policy(self) -> UpkeepPolicy:
        """What the table is kept by; of its layer's part, what `declared_tables` put into it."""
        return self.upkeep.policy


def name_of(table: str | TableDeclaration) -> str:
    """Return the name of a table that is given as such, or by its name.

    :raises DeclarationError: names what is neither, such as the asset that computes it.
    """
    if isinstance(table, str):
        return table
    if isinstance(table, TableDeclaration):
        return table.name
    raise DeclarationError(
        f"A table was given as {type(table).__name__}; expected an IcebergTable, or a name such"
        " as 'silver.fruits'.",
        next_step="Name the TABLE that the asset's file declares.",
    )


def _of_write(mode: WriteMode) -> tuple[object, ...]:
    match mode:
        case Append(once_by=columns):
            return ("append", None if columns is None else tuple(columns))
        case OverwritePartitions(by=column):
            return ("overwrite partitions", column)
        case Merge(on=key, stamp=stamp, within_file="first"):
            return ("merge", tuple(key), stamp, "first")
        case Merge(on=key, stamp=stamp):
            return ("merge", tuple(key), stamp)
        case Overwrite():
            return ("overwrite",)


def _of_rule(rule: Rule) -> tuple[str, ...]:
    return (rule.name, rule.on_failure, rule.sql, str(rule.fails_above))
