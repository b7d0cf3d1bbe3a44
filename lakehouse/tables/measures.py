"""What a rule may measure of a table, as values; the text of each says what it is."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal


@dataclass(frozen=True)
class Aggregate:
    """A figure of one column in the rows that are looked at."""

    function: Literal["avg", "sum"]
    column: str

    def __str__(self) -> str:
        return f"{self.function}({self.column})"


@dataclass(frozen=True)
class Difference:
    """How far a figure of the table lies from one of another table, as a share of that one."""

    here: str
    table: str
    there: str
    by: str | None = None
    """The column of the other table that has the partitions of a run."""

    def __str__(self) -> str:
        return f"difference of {self.here} from {self.there} of {self.table}"


@dataclass(frozen=True)
class RowCount:
    """Rows of the whole table."""

    def __str__(self) -> str:
        return "rows"


@dataclass(frozen=True)
class RowCountChange:
    """Rows that the whole table gained, as a share of those that it had some writes, or some
    time, earlier.
    """

    against: timedelta | int = 1

    def __str__(self) -> str:
        return f"growth since {against_text(self.against)} earlier"


@dataclass(frozen=True)
class AverageFileMb:
    """Size of the table's files in megabytes (2^20 bytes), on average."""

    def __str__(self) -> str:
        return "average megabytes of a file"


@dataclass(frozen=True)
class SchemaDifferences:
    """Columns of the table that are not what its declaration says."""

    def __str__(self) -> str:
        return "differences from the declared columns"


@dataclass(frozen=True)
class AgeHours:
    """Hours since rows were last published."""

    def __str__(self) -> str:
        return "hours since the last publish"


@dataclass(frozen=True)
class RefusedShare:
    """Rows that a write refused, as a share of those that it was given."""

    def __str__(self) -> str:
        return "share of the rows refused"


Metadata = RowCount | RowCountChange | AverageFileMb | SchemaDifferences | AgeHours
Measure = Aggregate | Difference | Metadata | RefusedShare


def against_text(against: timedelta | int) -> str:
    """Say how far back a state of a table lies."""
    if isinstance(against, timedelta):
        return (
            f"{against.days} days" if against == timedelta(days=against.days) else str(against)
        )
    return "1 write" if against == 1 else f"{against} writes"
