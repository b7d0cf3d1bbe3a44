"""Whether some partitions of a run already contain rows after the watermark.

The watermark of the entire table stays while other partitions are stale, such as a blocked one.
"""

from collections.abc import Mapping

from lakehouse.iceberg.metadata.commit_properties import CommitProperties
from lakehouse.iceberg.metadata.history import History
from lakehouse.iceberg.metadata.value_ranges import bound
from lakehouse.iceberg.metadata.write_context import Partitions
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.stale_partitions import commits_since
from lakehouse.tables.table import IcebergTable


def were_read_further(
    target: History,
    table: IcebergTable,
    inputs: Mapping[str, Input],
    partitions: Partitions | None,
) -> bool:
    """Whether some of a run's partitions were computed from rows after the watermark.

    False for a table of versions, where repeated rows are kept once.
    """
    if partitions is None or table.overwritten_by is None or table.versions is not None:
        return False
    sources = {
        declared.table
        for declared in inputs.values()
        if declared.mode == "incremental" and declared.by and not declared.outside
    }
    return any(_were_read_further(target, source, partitions) for source in sources)


def _were_read_further(target: History, source: str, partitions: Partitions) -> bool:
    watermark = target.watermark(source)
    if watermark is None:
        return False
    commits = list(commits_since(target, source, watermark))
    if not _are_all_kept(target, source, watermark, commits):
        # The partitions of expired commits are unknown.
        return True
    further = (commit for commit in commits if commit.read.get(source, watermark) != watermark)
    return any(_overlaps(commit, partitions) for commit in further)


def _are_all_kept(
    target: History, source: str, watermark: int, commits: list[CommitProperties]
) -> bool:
    """Whether the commits reach back to the one that set the watermark."""
    if target.line[-1].is_first_snapshot or any(
        commit.read.get(source) == watermark for commit in commits
    ):
        return True
    runs = [snapshot.commit for snapshot in target.line if snapshot.commit]
    return sum(bool(commit.read) for commit in runs) > len(commits)


def _overlaps(commit: CommitProperties, partitions: Partitions) -> bool:
    """Whether a commit computed rows of some partitions, which can have other bounds now."""
    if not (commit.merged_ranges and partitions.ranges):
        return not set(commit.partitions).isdisjoint(partitions.values)
    bounds = tuple((bound(low), bound(high)) for low, high in commit.merged_ranges)
    computed = Partitions((), bounds)
    # Two ranges overlap if one starts within the other.
    return any(partitions.touches(low) for low, _ in bounds) or any(
        computed.touches(low) for low, _ in partitions.merged_ranges
    )
