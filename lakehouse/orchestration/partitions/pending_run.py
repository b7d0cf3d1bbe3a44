"""The tables and partitions of one run, as a value."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import dagster as dg

from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.dagster_internals import DEFERS_ASSET_EVENTS
from lakehouse.orchestration.partitions.partition_bounds import only_tags
from lakehouse.orchestration.partitions.partition_groups import stretches

Stretch = tuple[str, str]


@dataclass(frozen=True)
class PendingRun:
    """The tables of one run in order, in full or in partitions from `first` to `last`.

    `only`: contiguous ranges to compute, if the assets support runs with gaps. `guards`:
    blocking checks of sources outside of the run, since a Dagster check blocks only its own
    run. `parts`: equivalent runs without gaps. `sizes`: number of partitions by table, if known.
    """

    tables: tuple[str, ...]
    first: str | None = None
    last: str | None = None
    guards: tuple[dg.AssetCheckKey, ...] = ()
    only: tuple[Stretch, ...] = ()
    parts: "tuple[PendingRun, ...]" = field(default=(), repr=False, compare=False)
    sizes: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of_partitions(
        cls,
        tables: Sequence[str],
        computed: Sequence[str],
        keys: Sequence[str],
        *,
        partitioned: Collection[str],
        leaves_gaps: bool = True,
        guards: Sequence[dg.AssetCheckKey] = (),
        parts: "Sequence[PendingRun]" = (),
    ) -> "PendingRun":
        """Return a run of some partitions.

        :param computed: keys to compute, in order.
        :param keys: all keys of the definition, in order.
        :param partitioned: partitioned tables.
        :param leaves_gaps: whether all assets support runs with gaps.
        """
        only = stretches(keys, computed)
        sizes = {table: len(computed) for table in tables if table in partitioned}
        return cls(
            tuple(tables),
            computed[0],
            computed[-1],
            tuple(guards),
            tuple(only) if leaves_gaps and len(computed) > 1 else (),
            tuple(parts),
            sizes,
        )

    @property
    def partitions(self) -> tuple[str, str] | None:
        """First and last partition key; None for full tables."""
        return (self.first, self.last) if self.first and self.last else None

    @property
    def bounds(self) -> tuple[str, ...]:
        """First and last key of each contiguous range; empty for full tables."""
        return tuple(chain.from_iterable(self.only)) or self.partitions or ()

    @property
    def tags(self) -> dict[str, str]:
        """What the run is tagged with, so that it computes these stretches and no more."""
        return {**only_tags(self.only), **DEFERS_ASSET_EVENTS} if self.only else {}

    @property
    def selection(self) -> dg.AssetSelection:
        """The Dagster selection of the run."""
        tables = dg.AssetSelection.assets(*map(asset_key, self.tables))
        return tables | dg.AssetSelection.checks(*self.guards) if self.guards else tables
