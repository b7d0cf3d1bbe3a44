"""Listener interface for the start and the outcome of writes, called by the engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_result import Outcome, Pin, Published
from lakehouse.tables.table import IcebergTable


@dataclass(frozen=True)
class BegunWrite:
    """One attempt of a write: its table, write id, run and inputs."""

    table: IcebergTable
    write_id: str
    run: Run = field(default_factory=Run)
    pins: Mapping[str, Pin] = field(default_factory=dict)


class WriteListener(Protocol):
    """Receives the events of writes, under the lock of their table; must not raise."""

    def begun(self, write: BegunWrite) -> None:
        """Record the start of a write."""

    def finished(self, write: BegunWrite, outcome: Outcome) -> None:
        """Record the outcome of a write."""

    def failed(self, write: BegunWrite, error: BaseException, *, had_conflict: bool) -> None:
        """Record that a write published nothing, because of an error or a conflicting writer."""

    def unended(self, table: str) -> Sequence[str]:
        """Return the ids of a table's writes without a recorded outcome."""

    def resolved(self, write: BegunWrite, published: Published | None) -> None:
        """Record the outcome of an unreported write; None if it published nothing."""


class NoListener:
    """Ignores all events."""

    def begun(self, write: BegunWrite) -> None:
        """Do nothing."""

    def finished(self, write: BegunWrite, outcome: Outcome) -> None:
        """Do nothing."""

    def failed(self, write: BegunWrite, error: BaseException, *, had_conflict: bool) -> None:
        """Do nothing."""

    def unended(self, table: str) -> Sequence[str]:  # noqa: ARG002
        """Return no ids."""
        return ()

    def resolved(self, write: BegunWrite, published: Published | None) -> None:
        """Do nothing."""


NO_LISTENER = NoListener()
