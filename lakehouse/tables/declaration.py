"""What a table declares, as values: its columns, how it is written, its rules and its layout,
and what follows.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Literal

from lakehouse.errors import DeclarationError
from lakehouse.tables import types
from lakehouse.tables.casts import Cast
from lakehouse.tables.partitioning import PartitionField, SortField
from lakehouse.tables.rule import Rule
from lakehouse.tables.type_promotion import leaf_paths
from lakehouse.tables.upkeep import Upkeep, UpkeepPolicy

DIGEST_OF_ROWS = "rows:"
"""Begin of a `declaration_hash` of what decides rows. One without it is of the whole
declaration: earlier versions made it, and nothing can be told from it now.
"""
SOURCE_KEY = ("_source_file", "_source_sha256")
"""The columns that say which delivery a row came with."""


@dataclass(frozen=True)
class Column:
    """A column: its name, its type as Spark writes it, and what it means.

    `required` is for what the machine fills, since Iceberg refuses a NULL there before any rule
    can speak. `personal` marks what identifies a person directly. `renamed_from` lists the names
    that it had, newest last. Of a `profiled` one each write tells the fraction of nulls and how
    many distinct values it brought.
    """

    name: str
    type: str
    doc: str = ""
    personal: bool = False
    required: bool = False
    renamed_from: Sequence[str] = ()
    profiled: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "renamed_from", _names(self.renamed_from))
        try:
            object.__setattr__(self, "type", str(types.parse(self.type)))
        except DeclarationError as error:
            raise DeclarationError(f"Column {self.name}: {error}") from None


@dataclass(frozen=True)
class Append:
    """Rows are added. Rows whose `once_by` values the table already has are left out, so that a
    re-run adds nothing.

    `once_by=None` stands for the columns of a delivery (`_source_file`, `_source_sha256`) where
    the table has them; `once_by=()` says that each run adds its rows, and is for what is
    computed from no other table.
    """

    once_by: Sequence[str] | None = None


@dataclass(frozen=True)
class Overwrite:
    """The whole table is replaced by the frame."""


@dataclass(frozen=True)
class OverwritePartitions:
    """The run's partitions of `by` are replaced by the frame, also by no rows; the others stay
    as they are.

    `by` is the column that the run's partitions are values of, and is a partition column of the
    table.
    """

    by: str


@dataclass(frozen=True)
class Merge:
    """Rows are inserted or updated by their key `on`; `stamp` is set on each row that changes,
    and is not compared.

    `prune_by` are columns in which rows of one key agree for ever: files that have none of the
    merged rows' values there are not looked into.
    """

    on: Sequence[str]
    stamp: str | None = None
    prune_by: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "on", (self.on,) if isinstance(self.on, str) else tuple(self.on)
        )
        object.__setattr__(
            self,
            "prune_by",
            (self.prune_by,) if isinstance(self.prune_by, str) else tuple(self.prune_by),
        )
        if not self.on:
            raise DeclarationError("Merge(on=…) names no column; expected the key of a row.")


WriteMode = Append | Overwrite | OverwritePartitions | Merge


@dataclass(frozen=True)
class Versions:
    """Rows that agree in `of` are versions of one thing, of which the table holds the newest
    that its rules accept.

    `newest` orders them, greatest last; by its first column alone a refused version counts as
    corrected by another, which takes it out of the quarantine. A refused version in which that
    column cannot be read counts as corrected by any. A merged table keeps the newest whatever
    comes later; what overwrites partitions asks `newest_accepted`.
    """

    of: Sequence[str]
    newest: Sequence[str]
    may_leave_out: bool = field(default=False, repr=False)
    """The function leaves rows out on purpose: `every_row_is_accounted_for` counts them, and
    does not fail for them.
    """

    def __post_init__(self) -> None:
        for name in ("of", "newest"):
            columns = _names(getattr(self, name))
            object.__setattr__(self, name, columns)
            if not columns:
                raise DeclarationError(
                    f"Versions({name}=…) names no column; expected at least one."
                )


@dataclass(frozen=True)
class TableDeclaration:
    """The parts of a table's declaration and what each implies; whether they agree is checked
    by `IcebergTable`.
    """

    name: str
    """`namespace.table`, which is also the asset key."""
    comment: str
    columns: Sequence[Column]
    write: WriteMode
    partitioning: Sequence[str] = ()
    rules: Sequence[Rule] = ()
    quarantine_name: str | None = None
    """Where refused rows go; `<name>_quarantine` where it is left out."""
    max_refused_share: float | None = None
    """Share of the rows of a write above which nothing is published; left out, half of 100 rows
    at the first one.
    """
    versions: Versions | None = None
    subject: str | None = None
    """The key column that stands for a person."""
    owner: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    sort_order: Sequence[str] = ()
    row_level: Literal["copy-on-write", "merge-on-read"] = "copy-on-write"
    target_file_mb: int = 128
    fanout: bool = False
    """Whether rows are written as they come, and not sorted by partition first.

    A task then keeps one file open for each partition that it has rows of, which costs a
    megabyte or more each: a delivery of thousands of days takes gigabytes, however small it is.
    """
    bloom_filters: Sequence[str] = ()
    file_format: Literal["parquet", "orc", "avro"] = "parquet"
    format_version: int = 2
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    dropped: Sequence[str] = ()
    """Columns that the table once had and shall lose."""
    upkeep: Upkeep = field(default_factory=Upkeep)
    """What differs from the upkeep of its layer."""
    freshness: timedelta | None = None
    """How old the last write may be before the table counts as late."""

    def __post_init__(self) -> None:
        for name in (
            "columns",
            "partitioning",
            "rules",
            "sort_order",
            "bloom_filters",
            "dropped",
        ):
            object.__setattr__(self, name, tuple(getattr(self, name)))
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

    def is_wall_time(self, name: str) -> bool:
        """Whether a column holds times without a zone, which are shown as they are."""
        return any(
            column.name == name and column.type == "timestamp_ntz" for column in self.columns
        )

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

    def cast_sql(self, column: str, raw: str) -> str:
        """Return SQL for a delivered value in its column's type; NULL where it cannot be read.

        :param raw: SQL of the delivered value.
        """
        if column in self.casts:
            return self.casts[column].sql(raw)
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

    @cached_property
    def declaration_hash(self) -> str:
        """A digest of what decides the table's rows, and of nothing else; each snapshot is
        stamped with it.

        Columns and types, write mode, rules that keep rows or a write back, versions and
        partitioning: what is computed from partitions is computed in full when one of them
        changed, and not when an owner or a comment did.
        """
        decisive = (
            sorted((column.name, column.type) for column in self.columns),
            _of_write(self.write),
            sorted(
                _of_rule(rule)
                for rule in self.rules
                if rule.on_failure == "quarantine" or rule.can_block
            ),
            (*self.versions.of, "newest", *self.versions.newest) if self.versions else (),
            self.partitioning,
        )
        return DIGEST_OF_ROWS + hashlib.sha256(repr(decisive).encode()).hexdigest()[:16]

    @property
    def upkeep_policy(self) -> UpkeepPolicy:
        """What the table is kept by; of its layer's part, what `declared_tables` put into it."""
        return self.upkeep.policy

    @cached_property
    def table_properties(self) -> dict[str, str]:
        """The Iceberg table properties that follow from the declaration, `properties` having
        the last word.
        """
        properties = {
            "format-version": str(self.format_version),
            "write.format.default": self.file_format,
            "write.target-file-size-bytes": str(self.target_file_mb * 1024 * 1024),
            "write.delete.mode": self.row_level,
            "write.update.mode": self.row_level,
            "write.merge.mode": self.row_level,
            "write.summary.partition-limit": "100",
            # Left out, Spark writes by fanout whatever has no sort order.
            "write.spark.fanout.enabled": str(self.fanout).lower(),
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": str(self.upkeep_policy.metadata_files),
        }
        if self.file_format != "avro":
            properties[f"write.{self.file_format}.compression-codec"] = "zstd"
        if (
            self.file_format == "parquet"
            and "write.parquet.compression-codec" not in self.properties
        ):
            # Of five million transactions, 4 % fewer bytes in bronze than at level 3, the
            # default, and 0.4 % more in silver; in less time.
            properties["write.parquet.compression-level"] = "1"
        for column in self.bloom_filters:
            properties[f"write.parquet.bloom-filter-enabled.column.{column}"] = "true"
        for column in sorted(self.personal_columns):
            properties |= dict.fromkeys(self.metrics_properties(column), "none")
        if self.owner:
            properties["lakehouse.owner"] = self.owner
        return properties | dict(self.properties)

    def metrics_properties(self, column: str) -> list[str]:
        """Return the properties that say which metrics Iceberg keeps of a column: one for each
        of its leaves.
        """
        paths = leaf_paths(types.parse(self.column(column).type), column)
        return [f"write.metadata.metrics.column.{path}" for path in paths]


def _names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of which a single one may be given as text."""
    return (names,) if isinstance(names, str) else tuple(names)


def _of_write(mode: WriteMode) -> tuple[object, ...]:
    match mode:
        case Append(once_by=columns):
            return ("append", None if columns is None else tuple(columns))
        case OverwritePartitions(by=column):
            return ("overwrite partitions", column)
        case Merge(on=key, stamp=stamp):
            return ("merge", tuple(key), stamp)
        case Overwrite():
            return ("overwrite",)


def _of_rule(rule: Rule) -> tuple[str, ...]:
    return (rule.name, rule.on_failure, rule.sql, str(rule.fails_above))
