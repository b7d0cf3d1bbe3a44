"""Who is told that a write began and how it ended; the machinery calls it, and knows nothing of
where it is told.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lakehouse.iceberg.metadata.write_context import Run
from lakehouse.iceberg.metadata.write_result import Outcome, Pin, Published
from lakehouse.tables.table import IcebergTable


@dataclass(frozen=True)
class BegunWrite:
    """One try at a write: its table, its id, the run that it is of, and what it reads."""

    table: IcebergTable
    write_id: str
    run: Run = field(default_factory=Run)
    pins: Mapping[str, Pin] = field(default_factory=dict)


class WriteListener(Protocol):
    """Something that is told of writes, under the lock of their table. No method raises: a write
    goes on whether it is told or not.
    """

    def begun(self, write: BegunWrite) -> None:
        """Take note that a write begins."""

    def ended(self, write: BegunWrite, outcome: Outcome) -> None:
        """Take note of what came of a write."""

    def failed(self, write: BegunWrite, error: BaseException, *, lost_race: bool) -> None:
        """Take note that a write published nothing, for an error or for another writer."""

    def unended(self, table: str) -> Sequence[str]:
        """Return the ids of the writes of a table that began and did not end."""

    def found_ended(self, write: BegunWrite, published: Published | None) -> None:
        """Take note of what came of a write whose process did not say; None where it published
        nothing.
        """


class NoListener:
    """Takes note of nothing."""

    def begun(self, write: BegunWrite) -> None:
        """Do nothing."""

    def ended(self, write: BegunWrite, outcome: Outcome) -> None:
        """Do nothing."""

    def failed(self, write: BegunWrite, error: BaseException, *, lost_race: bool) -> None:
        """Do nothing."""

    def unended(self, table: str) -> Sequence[str]:  # noqa: ARG002
        """Know of none."""
        return ()

    def found_ended(self, write: BegunWrite, published: Published | None) -> None:
        """Do nothing."""


NOBODY_LISTENS = NoListener()
