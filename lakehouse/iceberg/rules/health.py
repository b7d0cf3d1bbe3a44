"""Rules on table health, whose metrics grow until upkeep reduces them.

They never block a write, which is not the cause: outside of `warn_outside` the check is a
warning, and outside of the bounds an error. A table with regular upkeep stays far within the
default bounds.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Self, Unpack

from lakehouse.iceberg.commit.branch import kept_until
from lakehouse.iceberg.rules.evaluable_rule import EvaluatedSnapshot
from lakehouse.iceberg.rules.size_schema_and_freshness import MetadataRule
from lakehouse.tables.rule import BoundOptions, Number, OnFailure, bounds_of

_UPKEEP_PERIOD = timedelta(days=1)
"""How long due upkeep can wait."""


@dataclass(frozen=True)
class HealthRule(MetadataRule):
    """An upper bound on a health metric."""

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
        """Return a rule that warns above one limit, and is an error above another."""
        outside = {} if warn_above is None else {"warn_outside": (None, warn_above)}
        bounds = bounds_of(kind, None, at_most)
        return cls.declare(kind, (), description, {**outside, **options}, bounds=bounds)


class NeedlessFilesRule(HealthRule):
    """Files that a read of one partition opens unnecessarily: small files and delete files.

    The partition with the most such files counts.
    """

    value_name: ClassVar[str] = "needless files of a partition"

    def value(self, evaluated: EvaluatedSnapshot) -> tuple[Number | None, str]:
        health, most, where = evaluated.health, 0, ""
        for partition in health.partitions:
            needless = partition.fewer_files(health.target_bytes) + partition.delete_files
            if needless > most:
                values = ", ".join(f"{name}={value}" for name, value in partition.key.values)
                most, where = needless, values
        return most, where


class DeletedRowsRule(HealthRule):
    """Share of the rows in data files that are deleted by delete files."""

    value_name: ClassVar[str] = "share of the rows deleted"

    def value(self, evaluated: EvaluatedSnapshot) -> tuple[Number | None, str]:
        health = evaluated.health
        if not health.rows:
            return None, "it has no rows"
        return health.deleted_row_share, f"{health.deleted_rows} of {health.rows} rows"


class KeptSnapshotsRule(HealthRule):
    """Retained snapshots; each commit reads and writes the list of all."""

    value_name: ClassVar[str] = "snapshots"

    def value(self, evaluated: EvaluatedSnapshot) -> tuple[Number | None, str]:
        return len(evaluated.history.snapshots), ""


class NeedlessManifestsRule(HealthRule):
    """Manifests in excess of the number for their size, at least one per partition spec.

    A read opens all manifests that can contain its partitions.
    """

    value_name: ClassVar[str] = "needless manifests"

    def value(self, evaluated: EvaluatedSnapshot) -> tuple[Number | None, str]:
        health = evaluated.health
        needless = max(0, health.manifests - health.needed_manifests)
        return needless, f"{health.manifests} manifests"


class StrayBranchesRule(HealthRule):
    """Branches of blocked writes beyond their retention, and of dead writers."""

    fails_with_time: ClassVar[bool] = True
    value_name: ClassVar[str] = "stray branches"

    def value(self, evaluated: EvaluatedSnapshot) -> tuple[Number | None, str]:
        refused_for, stray = evaluated.table.upkeep_policy.refused_for, []
        for branch in sorted(evaluated.history.refs):
            until = kept_until(branch, refused_for)
            if until and evaluated.now - until > _UPKEEP_PERIOD:
                stray.append(branch)
        return len(stray), ", ".join(stray[:3])


def needless_files(
    at_most: int = 500, *, warn_above: int | None = 50, **options: Unpack[BoundOptions]
) -> NeedlessFilesRule:
    """Limit the files that a read of any partition opens unnecessarily: small files and delete
    files.

    :param at_most: above it, the check is an error.
    :param warn_above: above it, the check warns.
    """
    description = f"no partition has more than {at_most} small files to join and delete files"
    return NeedlessFilesRule.limited(
        "needless_files", description, at_most, warn_above, options
    )


def deleted_rows(
    at_most: float = 0.5, *, warn_above: float | None = 0.2, **options: Unpack[BoundOptions]
) -> DeletedRowsRule:
    """Limit the share of the rows in data files that are deleted by delete files, 0 to 1.

    :param at_most: above it, the check is an error.
    :param warn_above: above it, the check warns.
    """
    description = f"delete files delete at most {at_most:.0%} of the rows"
    return DeletedRowsRule.limited("deleted_rows", description, at_most, warn_above, options)


def kept_snapshots(
    at_most: int = 20_000, *, warn_above: int | None = 5_000, **options: Unpack[BoundOptions]
) -> KeptSnapshotsRule:
    """Limit the number of retained snapshots.

    The default is a month with a commit every nine minutes.

    :param at_most: above it, the check is an error.
    :param warn_above: above it, the check warns.
    """
    description = f"no more than {at_most} snapshots are kept"
    return KeptSnapshotsRule.limited(
        "kept_snapshots", description, at_most, warn_above, options
    )


def needless_manifests(
    at_most: int = 2_000, *, warn_above: int | None = 250, **options: Unpack[BoundOptions]
) -> NeedlessManifestsRule:
    """Limit the number of manifests in excess of those for their size.

    Iceberg merges manifests from a hundred on, separately for data and deletes.

    :param at_most: above it, the check is an error.
    :param warn_above: above it, the check warns.
    """
    description = f"no more than {at_most} manifests could be merged"
    return NeedlessManifestsRule.limited(
        "needless_manifests", description, at_most, warn_above, options
    )


def stray_branches(
    at_most: int = 20, *, warn_above: int | None = 0, **options: Unpack[BoundOptions]
) -> StrayBranchesRule:
    """Limit the number of branches of dead writers, and of blocked writes beyond
    `Upkeep(refused_for=…)`.

    :param at_most: above it, the check is an error.
    :param warn_above: above it, the check warns.
    """
    description = (
        f"no more than {at_most} branches of dead writers and old blocked writes remain"
    )
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
"""Default health rules of each table."""
