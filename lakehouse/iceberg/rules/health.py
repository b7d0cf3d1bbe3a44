"""Rules on how healthy a table is: what its metadata gathers until upkeep clears it away.

They never keep a write back, which is not to blame for what gathered: outside of `warn_outside`
their check is a warning, and outside of their bounds an error. A table of ours that upkeep looks
after stays far within the bounds that are the defaults.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Self, Unpack

from lakehouse.iceberg.commit.branch import kept_until
from lakehouse.iceberg.rules.evaluable_rule import EvaluatedSnapshot
from lakehouse.iceberg.rules.size_schema_and_freshness import MetadataRule
from lakehouse.tables.bounds import Number, bounds_of
from lakehouse.tables.rule import BoundOptions, OnFailure

_UPKEEPS_ROUND = timedelta(days=1)
"""How long what is due may wait for upkeep."""


@dataclass(frozen=True)
class HealthRule(MetadataRule):
    """Something that gathers is no more than its bounds allow."""

    on_failure: OnFailure = "warn"
    warns_as_error: ClassVar[bool] = True

    @classmethod
    def limited(
        cls,
        kind: str,
        description: str,
        at_most: Number,
        warn_above: Number | None,
        options: BoundOptions,
    ) -> Self:
        """Return a rule whose value warns above one number, and is an error above another."""
        outside = {} if warn_above is None else {"warn_outside": (None, warn_above)}
        bounds = bounds_of(kind, None, at_most)
        return cls.declare(kind, (), description, {**outside, **options}, bounds=bounds)


class NeedlessFilesRule(HealthRule):
    """Files that a read of one partition opens for nothing: small ones that could be joined,
    and delete files. The partition with the most counts.
    """

    value_name: ClassVar[str] = "needless files of a partition"

    def value(self, evaluated: EvaluatedSnapshot) -> tuple[Number | None, str]:
        """Return how many there are, and in which partition."""
        health, most, where = evaluated.health, 0, ""
        for partition in health.partitions:
            needless = partition.fewer_files(health.target_bytes) + partition.delete_files
            if needless > most:
                values = ", ".join(f"{name}={value}" for name, value in partition.key.values)
                most, where = needless, values
        return most, where


class DeletedRowsRule(HealthRule):
    """Rows in data files that delete files take off, as a share of all that are in them."""

    value_name: ClassVar[str] = "share of the rows deleted"

    def value(self, evaluated: EvaluatedSnapshot) -> tuple[Number | None, str]:
        """Return the share; None without rows."""
        health = evaluated.health
        if not health.rows:
            return None, "it has no rows"
        return health.deleted_row_share, f"{health.deleted_rows} of {health.rows} rows"


class KeptSnapshotsRule(HealthRule):
    """Snapshots that are kept; each commit reads and writes the list of all."""

    value_name: ClassVar[str] = "snapshots"

    def value(self, evaluated: EvaluatedSnapshot) -> tuple[Number | None, str]:
        """Return how many there are."""
        return len(evaluated.history.snapshots), ""


class NeedlessManifestsRule(HealthRule):
    """Manifests beyond those that their size takes, one at least for each partition spec; a
    read opens all that may hold its partitions.
    """

    value_name: ClassVar[str] = "needless manifests"

    def value(self, evaluated: EvaluatedSnapshot) -> tuple[Number | None, str]:
        """Return how many there are."""
        health = evaluated.health
        needless = max(0, health.manifests - health.needed_manifests)
        return needless, f"{health.manifests} manifests"


class StrayBranchesRule(HealthRule):
    """Branches of refused writes that are kept for longer than their time, and of writers that
    died.
    """

    fails_with_time: ClassVar[bool] = True
    value_name: ClassVar[str] = "stray branches"

    def value(self, evaluated: EvaluatedSnapshot) -> tuple[Number | None, str]:
        """Return how many there are, and their names."""
        refused_for, stray = evaluated.table.upkeep_policy.refused_for, []
        for branch in sorted(evaluated.history.refs):
            until = kept_until(branch, refused_for)
            if until and evaluated.now - until > _UPKEEPS_ROUND:
                stray.append(branch)
        return len(stray), ", ".join(stray[:3])


def needless_files(
    at_most: int = 500, *, warn_above: int | None = 50, **options: Unpack[BoundOptions]
) -> NeedlessFilesRule:
    """Say how many files a read of any one partition may open for nothing: small ones that
    could be joined, and delete files.

    :param at_most: above it the check is an error.
    :param warn_above: above it the check warns.
    """
    description = f"no partition has more than {at_most} small files to join and delete files"
    return NeedlessFilesRule.limited(
        "needless_files", description, at_most, warn_above, options
    )


def deleted_rows(
    at_most: float = 0.5, *, warn_above: float | None = 0.2, **options: Unpack[BoundOptions]
) -> DeletedRowsRule:
    """Say which share of the rows in data files delete files may take off, 0 to 1.

    :param at_most: above it the check is an error.
    :param warn_above: above it the check warns.
    """
    description = f"delete files take off {at_most:.0%} of the rows at most"
    return DeletedRowsRule.limited("deleted_rows", description, at_most, warn_above, options)


def kept_snapshots(
    at_most: int = 20_000, *, warn_above: int | None = 5_000, **options: Unpack[BoundOptions]
) -> KeptSnapshotsRule:
    """Say how many snapshots may be kept.

    By default, a month of a commit every nine minutes.

    :param at_most: above it the check is an error.
    :param warn_above: above it the check warns.
    """
    description = f"no more than {at_most} snapshots are kept"
    return KeptSnapshotsRule.limited(
        "kept_snapshots", description, at_most, warn_above, options
    )


def needless_manifests(
    at_most: int = 2_000, *, warn_above: int | None = 250, **options: Unpack[BoundOptions]
) -> NeedlessManifestsRule:
    """Say how many manifests there may be beyond those that their size takes.

    Iceberg itself joins them from a hundred on, data and deletes apart.

    :param at_most: above it the check is an error.
    :param warn_above: above it the check warns.
    """
    description = f"no more than {at_most} manifests could be joined with others"
    return NeedlessManifestsRule.limited(
        "needless_manifests", description, at_most, warn_above, options
    )


def stray_branches(
    at_most: int = 20, *, warn_above: int | None = 0, **options: Unpack[BoundOptions]
) -> StrayBranchesRule:
    """Say how many branches of dead writers, and of refused writes beyond their time
    (`Upkeep(refused_for=…)`), there may be.

    :param at_most: above it the check is an error.
    :param warn_above: above it the check warns.
    """
    description = f"no more than {at_most} branches are left of dead writers and old refusals"
    return StrayBranchesRule.limited(
        "stray_branches", description, at_most, warn_above, options
    )


DEFAULT_RULES: tuple[HealthRule, ...] = (
    needless_files(),
    deleted_rows(),
    kept_snapshots(),
    needless_manifests(),
    stray_branches(),
)
"""What must hold of each table that says nothing else."""
