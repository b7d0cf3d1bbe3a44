"""Time window partitions of which the UI shows only those that have or had rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any
from weakref import ReferenceType, ref

import dagster as dg

from lakehouse.errors import UsageError
from lakehouse.orchestration.dagster_internals import show_as_dynamic
from lakehouse.tables.escaping import quoted

_REMEMBERED_SECONDS = 1.0


class WindowsWithRows(dg.TimeWindowPartitionsDefinition):
    """Time window partitions of which the UI shows only those that have or had rows.

    Runs can compute all windows: a row does not require its day to be added first.
    """

    @property
    def name(self) -> str:
        """Dagster's storage key for the shown partitions; equal definitions share it."""
        schedule = self.schedule_type
        each = schedule.value.lower() if schedule else self.cron_schedule
        return f"{each} since {self.start.strftime(self.fmt)}, {self.timezone}"

    def get_partition_keys_in_range(
        self, partition_key_range: dg.PartitionKeyRange
    ) -> Sequence[str]:
        """Return the partitions of a range, only shown ones if both bounds are shown in the UI.

        :raises UsageError: see `check_partition`.
        """
        first, last = partition_key_range
        for bound in (first, last):
            self.check_partition(bound)
        with dg.partition_loading_context() as loading:
            store = loading.dynamic_partitions_store
        if store is None or first == last:
            return super().get_partition_keys_in_range(partition_key_range)
        shown = _read_shown(store, self.name)
        if first not in shown or last not in shown:
            return super().get_partition_keys_in_range(partition_key_range)
        between = shown[shown.index(first) : shown.index(last) + 1]
        return between or super().get_partition_keys_in_range(partition_key_range)

    def check_partition(self, key: str) -> None:
        """Check that a key is a window: users can add any text in the UI.

        :raises UsageError: names the valid range.
        """
        if not self.has_partition_key(key):
            first, last = self.get_first_partition_key(), self.get_last_partition_key()
            raise UsageError(
                f"There is no partition {quoted(key)}; expected one of {first} to {last}.",
                next_step=(
                    "Delete it on the table's page; one that gets rows is there by itself."
                ),
            )


show_as_dynamic(WindowsWithRows)


@dataclass
class _Remembered:
    """Cache of the shown partitions: Dagster queries them for each partition of a run."""

    store: ReferenceType[Any]
    name: str
    keys: list[str]
    read_at: float


_remembered: list[_Remembered] = []


def _read_shown(store: Any, name: str) -> list[str]:
    now = monotonic()
    for last in _remembered:
        is_recent = now - last.read_at < _REMEMBERED_SECONDS
        if is_recent and last.name == name and last.store() is store:
            return last.keys
    keys = [*store.get_dynamic_partitions(name)]
    _remembered[:] = [_Remembered(ref(store), name, keys, now)]
    return keys


def forget_shown() -> None:
    """Clear the cache after a change of the shown partitions."""
    _remembered.clear()
