"""The values of a table declaration and what is derived from them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from typing import Literal

from lakehouse.errors import DeclarationError
from lakehouse.tables import types
from lakehouse.tables.casts import Cast
from lakehouse.tables.column import Column, tuple_of
from lakehouse.tables.partitioning import PartitionField, SortField, TimeWindows
from lakehouse.tables.rule import CastableRule, Rule
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
"""The columns that identify the delivery of a row."""
SOURCE_COLUMNS = (*SOURCE_KEY, "_source_row")
"""The columns that identify the delivered row."""


@dataclass(frozen=True)
class TableDeclaration:
    """The parts of a table declaration and their derived values. `IcebergTable` validates them."""

    name: str
    """`namespace.table`, which is also the asset key."""
    comment: str
    """The description in the catalog and in Dagster."""
    columns: Sequence[Column]
    """The columns, in the order that readers see."""
    write: WriteMode
    """How a write changes existing rows: `Append`, `Overwrite`, `by_day` and similar,
    `OverwritePartitions` or `Merge`.
    """
    partitioning: Sequence[str] = ()
    """The partition spec: a column, `days(at)`, `hours(at)`, `months(at)`, `years(at)`,
    `bucket(16, id)`, `truncate(4, code)`. A change takes effect with `lakehouse apply`.
    """
    rules: Sequence[Rule] = ()
    """The data quality rules. Each one is a Dagster asset check with the same name."""
    quarantine_name: str | None = None
    """The table of rejected rows; default: `<name>_quarantine`."""
    max_refused_share: float | None = None
    """The maximum share of rejected rows in a write; above it, nothing is published. Default: a
    first write with at least 100 rows blocks if more than half are rejected.
    """
    versions: Versions | None = None
    """How versions of a row are ordered, if the source delivers rows again."""
    subject: str | None = None
    """The key column that identifies a person."""
    no_subject: str | None = None
    """Why the table has no subject, although it has personal columns or reads columns that
    identify people. Such values are erased one by one.
    """
    on_erasure: OnErasure = "recompute"
    """What an erasure does to a table without a subject whose inputs contain the data subject:
    recompute it, or keep it unchanged.
    """
    owner: str | None = None
    """The owner: an e-mail address, or the name of a team."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Tags of its asset in Dagster."""
    sort_order: Sequence[str] = ()
    """The sort order of rows within a data file, such as `at desc`, `id nulls last`."""
    row_level: RowLevel | None = None
    """How rows are changed: by rewriting data files, or with delete files. By default a merged
    table chooses by its size and the number of changed rows
    (`lakehouse.iceberg.evolve.row_level_mode`); other tables use copy-on-write.
    """
    target_file_mb: int = 128
    """The target file size, in units of 2^20 bytes."""
    fanout: bool = False
    """Whether rows are written without sorting them by partition first.

    Then each task has an open file for every partition, at a megabyte or more each. A delivery
    of thousands of days needs gigabytes of memory, however small it is.
    """
    bloom_filters: Sequence[str] = ()
    """Columns with a Parquet Bloom filter, for point lookups."""
    file_format: Literal["parquet", "orc", "avro"] = "parquet"
    """The format of new data files. `avro` files can only be read with Spark; DuckDB and Polars
    read only `parquet`.
    """
    format_version: int = 2
    """The Iceberg format version: 2, or 3, which not every engine reads. It cannot be lowered.
    """
    location: str | None = None
    """Where its files are stored; default: a folder of its own in the warehouse."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Additional Iceberg table properties."""
    dropped: Sequence[str] = ()
    """Former columns to remove from the table."""
    upkeep: Upkeep = field(default_factory=Upkeep)
    """Overrides of the layer's upkeep."""
    freshness: timedelta | None = None
    """The maximum age of the last write before the table is late."""
    rows_of: "TableDeclaration | None" = field(default=None, repr=False)
    """The table that each row originates from, such as the bronze table of a feed. Columns that
    are text there are cast to their types, and rows that cannot be cast are quarantined
    (`castable`). Docs, personal columns, `subject` and `no_subject` are inherited unless
    declared.
    """
    source_columns: bool | None = None
    """Whether the columns that identify the delivered row are copied from `rows_of`
    automatically. Default: yes if rows are appended or are versions.
    """
    time_zone: str | None = None
    """The zone of timestamps without an offset, and of the days that partition the table;
    default: that of `rows_of`, or UTC. `castable` and `dated` rules have their own zone.
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
        """The layer of the table."""
        return self.name.split(".")[0]

    @property
    def short_name(self) -> str:
        """The name without its layer."""
        return self.name.split(".")[1]

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """Return a column by name."""
        return {column.name: column for column in self.columns}[name]

    @cached_property
    def partition_fields(self) -> tuple[PartitionField, ...]:
        """The parsed partition spec."""
        return tuple(PartitionField.parse(text) for text in self.partitioning)

    @cached_property
    def sort_fields(self) -> tuple[SortField, ...]:
        """The parsed sort order."""
        return tuple(SortField.parse(text) for text in self.sort_order)

    @cached_property
    def row_rules(self) -> tuple[Rule, ...]:
        """The rules that a single row can break."""
        return tuple(rule for rule in self.rules if rule.is_row_rule)

    @cached_property
    def quarantining_rules(self) -> tuple[Rule, ...]:
        """The rules that quarantine rows."""
        return tuple(rule for rule in self.rules if rule.on_failure == "quarantine")

    @cached_property
    def casts(self) -> Mapping[str, Cast]:
        """The cast of each column that a rule casts."""
        return {rule.columns[0]: rule.cast for rule in self.rules if rule.cast}

    @cached_property
    def read_from_text(self) -> frozenset[str]:
        """The columns that are cast by their type, and only from text."""
        return frozenset(
            rule.columns[0]
            for rule in self.rules
            if isinstance(rule, CastableRule) and rule.follows_from_type
        )

    def cast_sql(self, column: str, raw: str) -> str:
        """Return SQL that casts the SQL `raw` of a delivered value; NULL if it cannot be cast."""
        if column in self.casts:
            return self.casts[column].sql(raw)
        return f"try_cast({raw} AS {self.column(column).type})"

    def broken_by(self, rule: Rule) -> str:
        """Return SQL of stored rows that break a row rule; none breaks a cast to its type."""
        if rule.cast and types.parse(self.column(rule.columns[0]).type) == types.parse(
            rule.cast.type
        ):
            return "false"
        return rule.predicate()

    @cached_property
    def profiled_columns(self) -> tuple[str, ...]:
        """The columns that each write profiles, without the stamp, which is never delivered."""
        return tuple(
            column.name
            for column in self.columns
            if column.profiled and column.name != self.stamp
        )

    @property
    def overwritten_by(self) -> str | None:
        """The column whose partitions are overwritten; None for other write modes."""
        return self.write.by if isinstance(self.write, OverwritePartitions) else None

    @property
    def windows(self) -> TimeWindows | None:
        """The time windows that are overwritten, unless the asset defines the partitions."""
        if not isinstance(self.write, OverwritePartitions) or self.write.windows is None:
            return None
        zone = self.write.windows.time_zone or self.wall_time_zone
        return replace(self.write.windows, time_zone=zone)

    @cached_property
    def delete_key_columns(self) -> frozenset[str]:
        """The columns by which a merge finds rows to delete; empty for other write modes."""
        if not isinstance(self.write, Merge):
            return frozenset()
        of = self.versions.of if self.versions else ()
        return frozenset((*self.write.on, *self.write.prune_by, *of))

    @property
    def version_key(self) -> tuple[str, ...]:
        """The columns that identify versions of a row; without `versions`, the merge key."""
        if self.versions:
            return tuple(self.versions.of)
        return tuple(self.write.on) if isinstance(self.write, Merge) else ()

    @property
    def wall_time_zone(self) -> str:
        """The zone of timestamps without an offset, and of days."""
        if self.time_zone is not None:
            return self.time_zone
        return self.rows_of.wall_time_zone if self.rows_of else "UTC"

    @property
    def stamp(self) -> str | None:
        """The column that a merge fills itself, or None."""
        return self.write.stamp if isinstance(self.write, Merge) else None

    @cached_property
    def personal_columns(self) -> frozenset[str]:
        """The columns that identify a person directly."""
        return frozenset(column.name for column in self.columns if column.personal)

    @cached_property
    def masked_columns(self) -> frozenset[str]:
        """The columns masked wherever rows are shown: personal columns and the subject."""
        return self.personal_columns | ({self.subject} if self.subject else set())

    @property
    def has_personal_data(self) -> bool:
        """Whether rows are about people, so that some values must not be shown."""
        return bool(self.masked_columns)

    @cached_property
    def once_by(self) -> tuple[str, ...]:
        """The columns that make an append idempotent; empty if each run adds its rows."""
        if not isinstance(self.write, Append):
            return ()
        if self.write.once_by is not None:
            return tuple(self.write.once_by)
        return SOURCE_KEY

    @property
    def is_log_of_runs(self) -> bool:
        """Whether each run appends unaudited rows of its own, as in the tables of `monitoring`."""
        return self.once_by == ("run_id",) and not self.rules

    @cached_property
    def declaration_hash(self) -> str:
        """A digest of everything that determines the table's rows; stored in each snapshot.

        It covers columns and types, write mode, rules that quarantine or block, versions and
        partitioning. The first run after such a change recomputes its partitions in full. A
        changed owner or comment does not.
        """
        decisive = (
            sorted((column.name, column.type) for column in self.columns),
            _of_write(self.write),
            sorted(
                (rule.name, rule.on_failure, rule.sql, str(rule.fails_above))
                for rule in self.rules
                if rule.is_declared and (rule.on_failure == "quarantine" or rule.can_block)
            ),
            (*self.versions.of, "newest", *self.versions.newest) if self.versions else (),
            self.partitioning,
        )
        return "rows:" + hashlib.sha256(repr(decisive).encode()).hexdigest()[:16]

    @property
    def upkeep_policy(self) -> UpkeepPolicy:
        """The effective upkeep policy; `declared_tables` merges in the layer's part."""
        return self.upkeep.policy


def name_of(table: str | TableDeclaration) -> str:
    """Return the name of a table given as a declaration or by name."""
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
