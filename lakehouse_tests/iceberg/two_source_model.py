"""What may happen to two sources and a table of both, and what plain Python says that the table
then has; it knows no engine.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

Shape = Literal[
    "merge",
    "beside latest",
    "last file",
    "append",
    "partitions",
    "versions",
    "overwrite",
    "newest of all",
]
"""How the table is written; `beside latest` merges as `merge` does, and reads one of the sources
as it is; `versions` keeps the newest of each key in partitions, `newest of all` without them.
"""
Kind = Literal["date", "timestamp", "string", "int"]
"""The type of the column that partitions the tables."""
RowLevels = Literal["whole files", "delete files", "both"]
"""How merges change rows: as of a small table, as of a large one, or as of a large one where
some change much of it.
"""
Follower = Literal["none", "keys", "days"]
"""What follows from the table: nothing, sums of the keys that changed, or sums of its days."""
BLOCKS = 9
"""The version that blocks what it lies in, until it is gone."""
NO_DAY = 3
RowId = tuple[str, str, int]
Delivery = tuple[str, str]
"""A file and the hash of its content."""


@dataclass(frozen=True)
class Deliver:
    """A file comes to one of the sources: rows of a key, a text, a version and a day."""

    source: int
    file: str
    rows: tuple[tuple[str, str, int, int], ...]


@dataclass(frozen=True)
class Compute:
    """The table is computed: what is stale, asked for of some days or refused, twice, or by a
    process that dies; and what follows from it, or not.
    """

    days: tuple[int, ...] | None = None
    full_recompute: bool = False
    killed: bool = False
    twice: bool = False
    follows: bool = False
    replays: bool = False


@dataclass(frozen=True)
class Clear:
    """A person clears the quarantine, or a process that dies before it has deleted anything."""

    killed: bool = False


@dataclass(frozen=True)
class Reject:
    """A person takes out what came to a source as the n-th delivery."""

    source: int
    number: int


@dataclass(frozen=True)
class Delete:
    """Rows of a key go from a source."""

    source: int
    key: str


@dataclass(frozen=True)
class Rollback:
    """A source goes back by some commits."""

    source: int
    commits: int


@dataclass(frozen=True)
class AddColumn:
    """A source has one more column from now on, and so has the table."""

    source: int


@dataclass(frozen=True)
class RollbackTable:
    """The table goes back by some commits."""

    commits: int


Step = Deliver | Compute | Clear | Reject | Delete | Rollback | RollbackTable | AddColumn


@dataclass(frozen=True)
class Row:
    """A delivered row; `v` is a number, `bad`, or `mend`, which a corrected function reads as 7;
    `day` is one of three, or a fourth for none, and `x` the column that was added later.
    """

    k: str
    v: str
    n: int
    day: int
    id: RowId
    arrival: int
    x: str | None


@dataclass(frozen=True)
class State:
    """What a source has by a commit of it, and which delivery that took out."""

    snapshot_id: int
    rows: frozenset[Row]
    rejected: Delivery | None = None


@dataclass
class SourceModel:
    """What a source has."""

    line: list[State] = field(default_factory=list)
    """Its commits up to now, oldest first."""
    seen: int | None = None
    """The commit that the table was last computed from."""

    @property
    def rows(self) -> frozenset[Row]:
        """What it has now."""
        return self.line[-1].rows if self.line else frozenset()

    def took_out(self, row: Row) -> bool:
        """Whether a row is of a delivery that was rejected since the table was computed, and
        did not come again.
        """
        known = [state.snapshot_id for state in self.line]
        begin = known.index(self.seen) + 1 if self.seen in known else 0
        rejected = {state.rejected for state in self.line[begin:]}
        return row.id[:2] in rejected and row.id not in {other.id for other in self.rows}


@dataclass
class Model:
    """Two sources and a table of both."""

    shape: Shape
    sources: tuple[SourceModel, SourceModel] = field(
        default_factory=lambda: (SourceModel(), SourceModel())
    )
    _kept: dict[str, Row] = field(default_factory=dict)
    """The rows of a table that keeps what it was given, by their key."""
    _delivered: set[Row] = field(default_factory=set)
    _rejected: set[RowId] = field(default_factory=set)
    _returned: set[RowId] = field(default_factory=set)
    """Rows that a rollback brought back, after a rejection had taken them out of the quarantine
    too.
    """
    is_corrected: bool = False
    """Whether the function reads `mend`."""
    cleared: set[RowId] = field(default_factory=set)

    def value(self, row: Row) -> int:
        """Return the number that an accepted row has."""
        return 7 if row.v == "mend" else int(row.v)

    def accepts(self, row: Row) -> bool:
        """Whether the text of a row is a number, and it has a day."""
        is_number = row.v.isdigit() or (self.is_corrected and row.v == "mend")
        return is_number and row.day != NO_DAY

    def committed(self, source: SourceModel, state: State) -> None:
        """A source has another state."""
        if state.rejected:
            self._rejected |= {row.id for row in source.rows if row.id[:2] == state.rejected}
        if not source.line or source.line[-1].snapshot_id != state.snapshot_id:
            source.line.append(state)
        assert source.rows == state.rows
        self._delivered |= source.rows
        self._rejected -= {row.id for row in source.rows}

    def rolled_back(self, source: SourceModel, commits: int) -> None:
        """A source lost its last commits."""
        del source.line[-commits:]
        returned = {row.id for row in source.rows} & self._rejected
        self._returned |= returned
        self._rejected -= returned

    def computed(self) -> None:
        """The table was computed and published: a merged or appended one keeps what it has but
        for what was rejected, whatever else went from its sources.
        """
        before = {
            key: row
            for key, row in self._kept.items()
            if not any(source.took_out(row) for source in self.sources)
        }
        came = self._last_of_keys(self.accepted)
        if self.shape == "append":
            came |= before
        elif self.shape == "last file":
            came = before | came
        else:
            came = self._last_of_keys([*before.values(), *came.values()])
        self._kept = came
        for source in self.sources:
            source.seen = source.line[-1].snapshot_id if source.line else None

    @property
    def table_state(self) -> tuple[dict[str, Row], list[int | None]]:
        """What the table has, and from which commits."""
        return self._kept, [source.seen for source in self.sources]

    def table_rolled_back(self, state: tuple[dict[str, Row], list[int | None]]) -> None:
        """The table has what it had then."""
        self._kept, seen = state
        for source, snapshot_id in zip(self.sources, seen, strict=True):
            source.seen = snapshot_id

    @property
    def standing(self) -> list[Row]:
        """All rows that the sources have."""
        return [row for source in self.sources for row in source.rows]

    @property
    def accepted(self) -> list[Row]:
        """Those of them that no rule on a row refuses."""
        return [row for row in self.standing if self.accepts(row)]

    @property
    def expected(self) -> list[Row]:
        """The rows that the table must have."""
        if self.shape in ("partitions", "overwrite"):
            return self.accepted
        if self.shape in ("versions", "newest of all"):
            return [*self._last_of_keys(self.accepted).values()]
        return [*self._kept.values()]

    @property
    def quarantine(self) -> tuple[set[RowId], set[RowId]]:
        """The rows that must wait in quarantine, and those that may.

        Refused rows wait, but for those that an accepted one of their key corrected. Those that
        went from their source, and were not rejected, may wait too; so may those of a key that
        an append has, which it skips even if its function accepts them now, or those that a row
        corrected that is gone itself.
        """
        accepted = {row.k: row for row in self.expected}
        refused = {row for row in self.standing if not self.accepts(row)}
        corrected = {row for row in refused if self._has_correction(row, accepted.get(row.k))}
        waiting = {row.id for row in refused - corrected}
        there = {row.id for row in self.standing}
        gone = {row.id for row in self._delivered} - there - self._rejected
        known = {row.id for row in corrected if accepted[row.k].id not in there}
        if self.shape == "append":
            known |= {row.id for row in self.standing if row.k in accepted}
        must = waiting - self._returned - self.cleared
        return must, waiting | gone | known

    def _has_correction(self, row: Row, accepted: Row | None) -> bool:
        if accepted is None or self.shape in ("partitions", "overwrite"):
            return False
        return self.shape == "append" or self._age(accepted) >= self._age(row)

    def _last_of_keys(self, rows: Iterable[Row]) -> dict[str, Row]:
        return {row.k: row for row in sorted(rows, key=self._age)}

    def _age(self, row: Row) -> tuple[Any, ...]:
        """Return what orders the rows of a key: the last counts, of an append the first by
        file.
        """
        file, content, number = row.id
        if self.shape == "append":
            return tuple(-ord(letter) for letter in f"{file} {content} {number}")
        if self.shape == "last file":
            return row.arrival, file, number
        return row.n, file, content, number
