"""The steps that bring the rest of a table to its declaration: partitioning, sort order,
location, properties.
"""

from dataclasses import dataclass

from lakehouse.iceberg.evolve.steps import Step, WaitingStep
from lakehouse.tables.partitioning import PartitionField, SortField


@dataclass(frozen=True)
class ChangePartitioning(WaitingStep):
    """New files are split by another field: one goes (`new=None`), one comes (`old=None`), or
    one replaces another.
    """

    rank = 6
    old: PartitionField | None
    new: PartitionField | None

    def describe(self) -> str:
        if self.new is None:
            return f"stop partitioning by {self.old}"
        return (
            f"partition by {self.new} in place of {self.old}"
            if self.old
            else f"partition also by {self.new}"
        )


@dataclass(frozen=True)
class ChangeSortOrder(WaitingStep):
    """New files are sorted in another way, or not at all. `distribution_mode` is what the
    property of that name is.
    """

    rank = 7
    fields: tuple[SortField, ...]
    distribution_mode: str | None = None

    def describe(self) -> str:
        return (
            f"sort new files by {', '.join(map(str, self.fields))}"
            if self.fields
            else "stop sorting new files"
        )


@dataclass(frozen=True)
class MoveLocation(WaitingStep):
    """New files are written elsewhere; the old ones stay where they are."""

    rank = 10
    found: str
    declared: str

    def describe(self) -> str:
        return f"write new files below {self.declared} rather than {self.found}"


@dataclass(frozen=True)
class UpgradeFormat(WaitingStep):
    """The table follows a newer version of the format, which some readers may not know."""

    rank = 11
    found: int
    declared: int

    def describe(self) -> str:
        return f"upgrade the format from version {self.found} to {self.declared}"


@dataclass(frozen=True)
class ChangeProperties(Step):
    """Properties get their declared values; those that the declaration no longer names go."""

    rank = 12
    values: tuple[tuple[str, str], ...] = ()
    unset: tuple[str, ...] = ()

    def describe(self) -> str:
        values = [f"{name}={value}" for name, value in self.values]
        return "; ".join(
            f"{verb} {', '.join(names)}"
            for verb, names in (("set", values), ("unset", self.unset))
            if names
        )
