"""What one run is to compute, as a value: the tables, and of each the partitions."""

from collections.abc import Mapping, Sequence
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

    `only` has, by table, the stretches of these that it computes, where any leaves some out.
    `guards` are the blocking checks of what they read and nobody computes along with them.
    Dagster lets a check hold back what comes after it within one run only. `parts` are the runs
    that would compute the same without a gap. `sizes` says, by table, how many partitions it
    computes, where that is known.
    """

    tables: tuple[str, ...]
    first: str | None = None
    last: str | None = None
    guards: tuple[dg.AssetCheckKey, ...] = ()
    only: tuple[tuple[str, tuple[Stretch, ...]], ...] = ()
    parts: "tuple[PendingRun, ...]" = field(default=(), repr=False, compare=False)
    sizes: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of_partitions(
        cls,
        tables: Sequence[str],
        computed: Mapping[str, Sequence[str]],
        keys: Sequence[str],
        guards: Sequence[dg.AssetCheckKey] = (),
        parts: "Sequence[PendingRun]" = (),
    ) -> "PendingRun":
        """Return a run of some partitions.

        :param computed: by table that has partitions, the keys that it computes.
        :param keys: all keys of the definition, in order.
        """
        by_table = {table: stretches(keys, chosen) for table, chosen in computed.items()}
        order = {key: position for position, key in enumerate(keys)}
        every = sorted(set(chain.from_iterable(computed.values())), key=order.__getitem__)
        whole = [(every[0], every[-1])]
        is_whole = all(found == whole for found in by_table.values())
        only = () if is_whole else tuple((name, tuple(by_table[name])) for name in by_table)
        sizes = {table: len(chosen) for table, chosen in computed.items()}
        return cls(tuple(tables), every[0], every[-1], tuple(guards), only, tuple(parts), sizes)

    @property
    def partitions(self) -> tuple[str, str] | None:
        """The keys of the first and the last partition; None for whole tables."""
        return (self.first, self.last) if self.first and self.last else None

    @property
    def tags(self) -> dict[str, str]:
        """What the run is tagged with, so that it leaves out what it is not to compute."""
        only = {table: found for table, found in self.only if table in self.tables}
        return {**only_tags(only), **NOTES_ITS_ASSETS} if only else {}

    @property
    def selection(self) -> dg.AssetSelection:
        """What Dagster is to run."""
        tables = dg.AssetSelection.assets(*map(asset_key, self.tables))
        return tables | dg.AssetSelection.checks(*self.guards) if self.guards else tables

    def bounds_of(self, table: str) -> tuple[str, ...]:
        """Return the first and the last key of each stretch that a table computes; none where it
        has no partitions.
        """
        stretches_of = dict(self.only).get(table, (self.partitions,) if self.partitions else ())
        return tuple(chain.from_iterable(stretches_of))
