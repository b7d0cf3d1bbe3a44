"""Code versions that computed a table's rows, from its commits: per table, or per partition.

They follow a rollback. Before upkeep expires commits, an empty commit carries their versions
forward. Commits that other tools expire are unknown afterwards.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from lakehouse.iceberg.metadata.commit_record import (
    UNKNOWN_CODE,
    CommitProperties,
    ComputedPart,
)
from lakehouse.iceberg.metadata.snapshots import History, Snapshot
from lakehouse.iceberg.values.value_ranges import ValueRange, joined, text

_Parts = tuple[ComputedPart, ...]


def computed_parts(history: History) -> _Parts:
    """Return the code versions of main's rows; empty if unknown."""
    recorded = recorded_code_version(history)
    return (ComputedPart(frozenset({recorded})),) if recorded else _versions_from(history.line)


def recorded_code_version(history: History) -> str:
    """Return the code version recorded for an unchanged run on main; empty if there is none."""
    main, unchanged = history.main, history.unchanged_run
    is_current = main is not None and unchanged.snapshot_id == main.snapshot_id
    return unchanged.code_version if is_current else ""


def is_complete_on_main(history: History) -> bool:
    """Whether the newest commit is sufficient to determine the code versions of all rows."""
    return _versions_from(history.line[:1]) == computed_parts(history)


def _versions_from(line: Sequence[Snapshot]) -> _Parts:
    """Return the code versions from some commits, newest first; empty if unknown."""
    writes: list[CommitProperties] = []
    carried: _Parts = ()
    for snapshot in line:
        if snapshot.commit and snapshot.commit.computed_by:
            carried = snapshot.commit.computed_by
            break
        if snapshot.is_write:
            foreign_write = CommitProperties("write", "", keeps_rows=True)
            writes.append(snapshot.commit or foreign_write)
    rest = {version for part in carried if part.is_remainder for version in part.versions}
    if not carried and line and not line[-1].is_first_snapshot:
        rest.add(UNKNOWN_CODE)
    has_partitions = any(write.partitions or write.merged_ranges for write in writes)
    if has_partitions or not all(part.is_remainder for part in carried):
        parts = _partition_parts(writes, carried, rest)
    else:
        parts = (ComputedPart(_table_versions(writes, rest)),)
    is_known = any(part.versions - {UNKNOWN_CODE} for part in parts)
    return parts if is_known else ()


def _table_versions(writes: Iterable[CommitProperties], rest: set[str]) -> frozenset[str]:
    versions: set[str] = set()
    for write in writes:
        versions.add(write.code_version)
        if not write.keeps_rows and write.code_version:
            return frozenset(versions)
    return frozenset(versions | rest)


def _partition_parts(
    writes: Sequence[CommitProperties], carried: _Parts, rest: set[str]
) -> _Parts:
    """Return the partitions grouped by the code versions that computed them.

    :param rest: versions of partitions that no commit names.
    """
    written_parts = [*map(_part_of, writes)]
    merged_ranges = _elementary([*written_parts, *carried])
    names: set[str] = set()
    for part in (*written_parts, *carried):
        names.update(() if part.merged_ranges else part.values)
    values_by_versions: defaultdict[frozenset[str], list[str]] = defaultdict(list)
    ranges_by_versions: defaultdict[frozenset[str], list[ValueRange]] = defaultdict(list)
    for name in sorted(names):
        versions = _versions_at(name, writes, written_parts, carried, rest)
        values_by_versions[versions].append(name)
    for span in merged_ranges:
        versions = _versions_at(span, writes, written_parts, carried, rest)
        if versions:
            ranges_by_versions[versions].append(span)
    parts = []
    for versions in sorted({*values_by_versions, *ranges_by_versions}, key=sorted):
        bounds = joined(ranges_by_versions.get(versions, ()))
        parts.append(
            ComputedPart(
                versions,
                tuple(values_by_versions.get(versions, ())),
                tuple((text(low), text(high)) for low, high in bounds),
            )
        )
    if rest:
        parts.append(ComputedPart(frozenset(rest)))
    return tuple(parts)


def _part_of(write: CommitProperties) -> ComputedPart:
    names = () if write.merged_ranges else write.partitions
    return ComputedPart(frozenset({write.code_version}), names, write.merged_ranges)


def _elementary(parts: Iterable[ComputedPart]) -> list[ValueRange]:
    """Return the ranges between all bounds of some parts; bounds of former types are left out."""
    bounds: list[object] = []
    for part in parts:
        for span in part.partitions.merged_ranges:
            bounds.extend(span)
    alike = sorted({each for each in bounds if type(each) is type(bounds[0])})  # type: ignore[type-var]
    return list(pairwise(alike))  # type: ignore[arg-type]


def _versions_at(
    place: str | ValueRange,
    writes: Sequence[CommitProperties],
    written_parts: Sequence[ComputedPart],
    carried: _Parts,
    rest: set[str],
) -> frozenset[str]:
    """Return the versions that computed a partition since its last recompute; empty if unnamed."""
    versions: set[str] = set()
    for write, part in zip(writes, written_parts, strict=True):
        if _has(part, place):
            versions.add(write.code_version)
            if not write.keeps_rows:
                return _known(versions)
    named = [part for part in carried if _has(part, place)]
    for part in named:
        versions |= part.versions
    if versions and not named:
        versions |= rest
    return _known(versions)


def _known(versions: set[str]) -> frozenset[str]:
    # First rows are appended like later ones, so there can be no earlier version.
    return frozenset(versions - {UNKNOWN_CODE} or versions)


def _has(part: ComputedPart, place: str | ValueRange) -> bool:
    if isinstance(place, str):
        return place in part.values
    low, high = place
    return any(
        type(begin) is type(low) and begin <= low and high <= end  # type: ignore[operator]
        for begin, end in part.partitions.merged_ranges
    )
