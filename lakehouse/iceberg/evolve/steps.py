"""The steps that bring a table's schema to its declaration, as values, and the refusals where
no step may.

An automatic step runs before a write. The others wait for `lakehouse apply`; those that block
writes stop them until then, since the frames that the declaration makes would not fit the
table.
"""

from dataclasses import dataclass
from typing import ClassVar

from lakehouse.tables.table import IcebergTable

Path = tuple[str, ...]
"""A column, or what leads to a field inside one: `("lines", "element", "price")`."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One change of a table. Steps run in the order of `rank`: a name must stand before others
    refer to it.
    """

    rank: ClassVar[int]
    blocks_writes: ClassVar[bool] = False
    automatic: bool = True

    def describe(self) -> str:
        """Say in one line what the step does."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class WaitingStep(Step):
    """A change that `lakehouse apply` makes."""

    automatic: bool = False


@dataclass(frozen=True)
class CreateTable(Step):
    """The table is not there."""

    rank = 0
    table: IcebergTable

    def describe(self) -> str:
        spec = (
            f", partitioned by {', '.join(self.table.partitioning)}"
            if self.table.partitioning
            else ""
        )
        return f"create the table with {len(self.table.columns)} columns{spec}"


@dataclass(frozen=True)
class RenameColumn(WaitingStep):
    """A column has a new name; its values and its id stay."""

    rank = 1
    blocks_writes = True
    old: str
    new: str

    def describe(self) -> str:
        return f"rename column {self.old} to {self.new}"


@dataclass(frozen=True)
class WidenColumn(Step):
    """A type becomes one that holds all of its values."""

    rank = 2
    path: Path
    found: str
    declared: str

    def describe(self) -> str:
        return f"widen column {dotted(self.path)} from {self.found} to {self.declared}"


@dataclass(frozen=True)
class MakeOptional(WaitingStep):
    """A column may hold NULL."""

    rank = 3
    column: str

    def describe(self) -> str:
        return f"let column {self.column} hold NULL"


@dataclass(frozen=True)
class AddColumn(Step):
    """A column, or a field inside one, is new; existing rows have NULL there. `after=None` puts
    it first.
    """

    rank = 4
    path: Path
    type: str
    doc: str = ""
    after: str | None = None

    def describe(self) -> str:
        return f"add column {dotted(self.path)} {self.type} {_place(self.after)}"


@dataclass(frozen=True)
class Comment(Step):
    """A column says something else of itself; the table does where `column` is None."""

    rank = 5
    column: str | None
    text: str

    def describe(self) -> str:
        return (
            f"describe {f'column {self.column}' if self.column else 'the table'} as"
            f" {self.text!r}"
        )


@dataclass(frozen=True)
class DropColumn(WaitingStep):
    """A column, or a field inside one, goes; earlier snapshots still show it."""

    rank = 8
    blocks_writes = True
    path: Path

    def describe(self) -> str:
        return f"drop column {dotted(self.path)}"


@dataclass(frozen=True)
class MoveColumn(WaitingStep):
    """A column, or a field inside one, stands elsewhere. `after=None` puts it first."""

    rank = 9
    path: Path
    after: str | None = None

    def describe(self) -> str:
        return f"move column {dotted(self.path)} {_place(self.after)}"


@dataclass(frozen=True)
class CommitSchema(Step):
    """An empty commit carries the current schema, so that time travel shows the names of its
    time.
    """

    rank = 13

    def describe(self) -> str:
        return "commit the current schema, so that time travel shows it"


@dataclass(frozen=True)
class Refusal:
    """A declared change that would lose data or break readers.

    `found` and `declared` complete "… is `found` in the table and `declared` in the
    declaration".
    """

    table: str
    subject: str
    """What the change is about, such as `column price`."""
    found: str
    declared: str
    why: str
    next_step: str

    def __str__(self) -> str:
        return (
            f"{self.table}: {self.subject} is {self.found} in the table and {self.declared} in"
            f" the declaration; {self.why} {self.next_step}"
        )


Change = Step | Refusal


def dotted(path: Path) -> str:
    """Write a path as people do: `lines.element.price`."""
    return ".".join(path)


def _place(after: str | None) -> str:
    return f"after {after}" if after else "first"
