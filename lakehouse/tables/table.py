"""The validated declaration of a table: the single source of truth about it."""

from dataclasses import dataclass, replace
from functools import cached_property

from lakehouse.tables.column import Column
from lakehouse.tables.declaration import SOURCE_COLUMNS, SOURCE_KEY, TableDeclaration
from lakehouse.tables.partitioning import PartitionField, check_time_zone
from lakehouse.tables.quarantine_columns import (
    QUARANTINE_COLUMN_NAMES,
    QUARANTINE_COLUMNS,
    as_delivered,
)
from lakehouse.tables.rows_of import columns_with_source, people_as_there, rules_with_casts
from lakehouse.tables.table_validation import (
    check_casts,
    check_columns,
    check_known,
    check_layout,
    check_rules,
    check_subject,
)
from lakehouse.tables.upkeep import Upkeep
from lakehouse.tables.write_modes import (
    Append,
    Merge,
    Overwrite,
    OverwritePartitions,
    Versions,
    WriteMode,
    by_day,
    by_hour,
    by_month,
)

__all__ = [
    "SOURCE_COLUMNS",
    "SOURCE_KEY",
    "Append",
    "Column",
    "IcebergTable",
    "Merge",
    "Overwrite",
    "OverwritePartitions",
    "Upkeep",
    "Versions",
    "WriteMode",
    "by_day",
    "by_hour",
    "by_month",
]


@dataclass(frozen=True)
class IcebergTable(TableDeclaration):
    """A table, declared once; creation, evolution, writes, checks, lineage and masking derive
    from it.

    :raises DeclarationError: if parts of the declaration contradict each other; states the
        table and the part.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "columns", columns_with_source(self))
        subject, no_subject = people_as_there(self)
        object.__setattr__(self, "subject", subject)
        object.__setattr__(self, "no_subject", no_subject)
        object.__setattr__(self, "rules", rules_with_casts(self))
        object.__setattr__(self, "partitioning", _with_windows(self))
        _check(self)

    def __hash__(self) -> int:
        return hash(self.name)

    @cached_property
    def quarantine(self) -> "IcebergTable | None":
        """The table of rejected rows before casting, with the reasons; None if no rule
        quarantines.

        The stored text identifies a corrected version; bronze has the exact delivered values.
        """
        if not self.quarantining_rules:
            return None
        # Including the stamp, although it is never delivered: another column may become the
        # stamp later.
        delivered = [
            as_delivered(column)
            for column in self.columns
            if column.name not in QUARANTINE_COLUMN_NAMES
        ]
        return IcebergTable(
            name=self.quarantine_name or f"{self.name}_quarantine",
            comment=f"Rows that the rules of {self.name} rejected, as they were delivered.",
            columns=(*delivered, *QUARANTINE_COLUMNS),
            write=Merge(on=("_row_key",), stamp="_quarantined_at", prune_by=("_source_file",)),
            subject=self.subject,
            no_subject=self.no_subject,
            owner=self.owner,
            tags=self.tags,
            # The quarantine may lack the columns of the table's sort order.
            upkeep=replace(self.upkeep, sort_by=None, z_order=None),
            dropped=[name for name in self.dropped if name not in QUARANTINE_COLUMN_NAMES],
        )


def _with_windows(table: IcebergTable) -> tuple[str, ...]:
    """Return the partitioning, including the time windows of the write mode."""
    by, fields = table.overwritten_by, tuple(table.partitioning)
    named = {PartitionField.parse(text).column for text in fields}
    if table.windows is None or by is None or by in named or by not in table.column_names:
        return fields
    return (table.windows.partitioning(by, table.column(by).type), *fields)


def _check(table: IcebergTable) -> None:
    if table.time_zone is not None:
        check_time_zone(table.time_zone, table.name)
    check_columns(table)
    check_subject(table, QUARANTINE_COLUMN_NAMES)
    check_rules(table)
    check_casts(table)
    if isinstance(table.write, Merge):
        check_known(table, "Merge(on=…)", table.write.on)
        check_known(table, "Merge(prune_by=…)", table.write.prune_by)
        check_known(table, "Merge(stamp=…)", [table.stamp] if table.stamp else [])
    check_known(table, "Upkeep(sort_by=…)", table.upkeep_policy.sort_by)
    check_layout(table, QUARANTINE_COLUMNS)
