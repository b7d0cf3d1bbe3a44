"""What one run is to compute, as a value: tables, and which of their partitions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import dagster as dg

from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.dagster_internals import NOTES_ITS_ASSETS
from lakehouse.orchestration.partition_bounds import only_tags
from lakehouse.orchestration.partition_groups import stretches

Stretch = tuple[str, str]


@dataclass(frozen=True)
class PendingRun:
    """What one run is to compute: tables in order, as a whole or in partitions from `first` to
    `last`.

    `only` has the stretches of these that it computes, where its assets look at that: they may
    leave some out, and note themselves what they compute. `guards` are the
    blocking checks of what the tables read and nobody computes along with them. Dagster lets a
    check hold back what comes after it within one run only. `parts` are the runs that would
    compute the same without a gap. `sizes` says, by table, how many partitions it computes, where
    that is known.
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

        :param computed: the keys of the partitions, in order.
        :param keys: all keys of the definition, in order.
        :param partitioned: those of the tables that have partitions.
        :param leaves_gaps: whether each of their assets looks at which it is to compute.
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
        """The keys of the first and the last partition; None for whole tables."""
        return (self.first, self.last) if self.first and self.last else None

    @property
    def bounds(self) -> tuple[str, ...]:
        """The first and the last key of each stretch of partitions that is computed; none for
        whole tables.
        """
        return tuple(chain.from_iterable(self.only)) or self.partitions or ()

    @property
    def tags(self) -> dict[str, str]:
        """What the run is tagged with, so that it computes these stretches and no more."""
        return {**only_tags(self.only), **NOTES_ITS_ASSETS} if self.only else {}

    @property
    def selection(self) -> dg.AssetSelection:
        """What Dagster is to run."""
        tables = dg.AssetSelection.assets(*map(asset_key, self.tables))
        return tables | dg.AssetSelection.checks(*self.guards) if self.guards else tables
