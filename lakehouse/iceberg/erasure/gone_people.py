"""Who is gone, as everything that computes tables asks: anew for each write, since a person may be
erased while a run goes on.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from lakehouse.iceberg.erasure.without_gone import Gone, Moment, WithoutGone, without_gone
from lakehouse.iceberg.read.inputs import Input
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Compute = Callable[..., "DataFrame"]


@dataclass(frozen=True)
class _Nobody:
    key: bytes | None = None
    erased_at: Mapping[bytes, datetime] = field(default_factory=dict)

    def is_gone(self, names: Iterable[str], value: str) -> datetime | None:  # noqa: ARG002
        return None


_NOBODY = _Nobody()


@dataclass(frozen=True)
class GonePeople:
    """Who is gone, and by what the rows of the declared tables are known to be theirs; left out,
    nobody is.
    """

    read: Callable[[], Gone] = lambda: _NOBODY
    """Returns who is gone now."""
    tables: Mapping[str, IcebergTable] = field(default_factory=dict)
    """The declared tables, by name."""
    names: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By table, all that any table calls its subject."""
    moments: Mapping[str, Moment] = field(default_factory=dict)
    """By table, when a row was made, where that is not the first of its `versions.newest`."""
    sources: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By table, the tables that it is computed from."""

    def begin(self) -> "LeftOut":
        """Read who is gone, for one write or read."""
        return LeftOut(self, self.read())

    def names_of(self, table: str, subject: str) -> Collection[str]:
        """Return all that tables call what stands for a person in a table."""
        return {subject, *self.names.get(table, ())}


NOBODY_GONE = GonePeople()


@dataclass(frozen=True)
class LeftOut:
    """Rows of people who are gone that a write or read leaves out; none while nobody is, and then
    each frame stays what it is.
    """

    people: GonePeople
    gone: Gone
    by_input: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Of which table and how many, by input; counted once for each."""

    @property
    def is_anybody(self) -> bool:
        """Whether anybody is gone."""
        return bool(self.gone.erased_at)

    @property
    def rows(self) -> dict[str, int]:
        """How many rows were left out so far, by table."""
        rows: dict[str, int] = {}
        for table, count in self.by_input.values():
            rows[table] = rows.get(table, 0) + count
        return rows

    def split(
        self, table: IcebergTable, frame: "DataFrame", *, unless: str = "false"
    ) -> WithoutGone:
        """Return the rows of a frame of a table with and without those of people who are gone.

        :param unless: a SQL predicate of rows that stay, whosever they are.
        """
        return without_gone(
            frame,
            table,
            self.gone,
            moment=self.people.moments.get(table.name),
            names=self.people.names.get(table.name, ()),
            unless=unless,
        )

    def leave_out(
        self,
        table: IcebergTable,
        frame: "DataFrame",
        *,
        read_as: str = "",
        unless: str = "false",
    ) -> "DataFrame":
        """Return a frame without the rows of people who are gone, and count these.

        What tells is read once more for that; where it tells of none, the frame is returned as
        it was.

        :param read_as: the name of the input that it is; empty for what a function computed.
        """
        split = self.split(table, frame, unless=unless)
        rows = split.count_dropped()
        if not rows:
            return frame
        self.by_input.setdefault(read_as, (table.name, rows))
        return split.rows

    def without_gone(self, inputs: Mapping[str, Input], compute: Compute) -> Compute:
        """Return a function that computes what another does, without the rows of people who are
        gone; the function itself while nobody is.

        They are taken from its inputs. A target's own rows are let through, since an erasure has
        taken theirs; so are the keys of changed rows, since what a target makes of them is read
        of rows.
        """
        if not self.is_anybody:
            return compute

        def computed(**frames: "DataFrame") -> "DataFrame":
            kept = dict(frames)
            for name, declared in inputs.items():
                source = self.people.tables.get(declared.table)
                is_let_through = declared.mode in ("changed_keys", "existing_rows")
                if source is not None and name in frames and not is_let_through:
                    kept[name] = self.leave_out(source, frames[name], read_as=name)
            return compute(**kept)

        return computed
