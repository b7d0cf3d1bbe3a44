"""Listener interface for the start and the outcome of writes, called by the engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_result import Outcome, Pin
from lakehouse.tables.table import IcebergTable


@dataclass(frozen=True)
class BegunWrite:
    """One attempt of a write: its table, write id, run and inputs."""

    table: IcebergTable
    write_id: str
    run: Run = field(default_factory=Run)
    pins: Mapping[str, Pin] = field(default_factory=dict)


class WriteListener:
    """Receives the events of writes, under the lock of their table; ignores all of them.

    The methods must not raise.
    """

    def begun(self, write: BegunWrite) -> None:
        """Record the start of a write."""

    def finished(self, write: BegunWrite, outcome: Outcome) -> None:
        """Record the outcome of a write."""

    def failed(self, write: BegunWrite, error: BaseException, *, had_conflict: bool) -> None:
        """Record that a write published nothing, because of an error or a conflicting writer."""


NO_LISTENER = WriteListener()
