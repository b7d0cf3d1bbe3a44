"""By which code a table's rows were computed, told by its commits: of the whole table, or by
partitions where it is overwritten by them.

Each commit of a write says by which version of the code it was made (Dagster's `code_version`),
and whether rows stay that were there before. So it follows a rollback, and an event that got lost
hides nothing. Where commits may expire, an empty one on top says what they said, as it does of
watermarks. What somebody else expires with other tools is not known afterwards.
"""

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise

from lakehouse.iceberg.metadata.commit_properties import CommitProperties
from lakehouse.iceberg.metadata.computed_parts import UNKNOWN_CODE, ComputedPart
from lakehouse.iceberg.metadata.history import UNCHANGED_PROPERTY, History, Snapshot
from lakehouse.iceberg.metadata.value_ranges import Span, joined, text

NOTED_CODE = "code_version"
"""Key in the note of what was read without a row changing: the code that computed all rows."""
_Parts = tuple[ComputedPart, ...]


def computed_parts(history: History) -> _Parts:
    """Return by which code the rows of main were computed, as far as that is known; nothing of
    a table where nothing is.
    """
    noted = noted_version(history)
    return (ComputedPart(frozenset({noted})),) if noted else _told_by(history.line)


def noted_version(history: History) -> str:
    """Return the code that would compute all rows of main as they are, as a property notes;
    empty where none does.
    """
    noted = json.loads(history.properties.get(UNCHANGED_PROPERTY, "{}"))
    main = history.main
    holds = main is not None and noted.get("snapshot") == str(main.snapshot_id)
    version: str = noted.get(NOTED_CODE, "") if holds else ""
    return version


def is_told_by_main(history: History) -> bool:
    """Whether the newest commit alone says by which code the rows were computed."""
    return _told_by(history.line[:1]) == computed_parts(history)


def _told_by(line: Sequence[Snapshot]) -> _Parts:
    """Return what some commits say, newest first; nothing where they know nothing."""
    writes: list[CommitProperties] = []
    carried: _Parts = ()
    for snapshot in line:
        if snapshot.commit and snapshot.commit.computed_by:
            carried = snapshot.commit.computed_by
            break
        if snapshot.is_write:
            by_others = CommitProperties("write", "", keeps_rows=True)
            writes.append(snapshot.commit or by_others)
    rest = {version for part in carried if part.is_whole for version in part.versions}
    if not carried and line and not line[-1].begins:
        rest.add(UNKNOWN_CODE)
    if any(map(_has_partitions, writes)) or not all(part.is_whole for part in carried):
        parts = _partition_parts(writes, carried, rest)
    else:
        parts = (ComputedPart(_whole_versions(writes, rest)),)
    is_known = any(part.versions - {UNKNOWN_CODE} for part in parts)
    return parts if is_known else ()


def _has_partitions(write: CommitProperties) -> bool:
    return bool(write.partitions or write.spans)


def _whole_versions(writes: Iterable[CommitProperties], rest: set[str]) -> frozenset[str]:
    versions: set[str] = set()
    for write in writes:
        versions.add(write.code_version)
        if not write.keeps_rows and write.code_version:
            return frozenset(versions)
    return frozenset(versions | rest)


def _partition_parts(
    writes: Sequence[CommitProperties], carried: _Parts, rest: set[str]
) -> _Parts:
    """Return the partitions by the versions that they were computed by, each in one part.

    :param rest: the versions of what no commit names.
    """
    said = [*map(_part_of, writes)]
    spans = _elementary([*said, *carried])
    names: set[str] = set()
    for part in (*said, *carried):
        names.update(() if part.spans else part.values)
    values_by_versions: dict[frozenset[str], list[str]] = {}
    for name in sorted(names):
        versions = _versions_at(name, writes, said, carried, rest)
        values_by_versions.setdefault(versions, []).append(name)
    spans_by_versions: dict[frozenset[str], list[Span]] = {}
    for span in spans:
        versions = _versions_at(span, writes, said, carried, rest)
        if versions:
            spans_by_versions.setdefault(versions, []).append(span)
    parts = []
    for versions in sorted({*values_by_versions, *spans_by_versions}, key=sorted):
        bounds = joined(spans_by_versions.get(versions, ()))
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
    names = () if write.spans else write.partitions
    return ComputedPart(frozenset({write.code_version}), names, write.spans)


def _elementary(parts: Iterable[ComputedPart]) -> list[Span]:
    """Return the spans between all bounds of some parts that come one after the other.

    Those of another type than the newest have are left out: the column had another one then.
    """
    bounds: list[object] = []
    for part in parts:
        for span in part.partitions.spans:
            bounds.extend(span)
    alike = sorted({each for each in bounds if type(each) is type(bounds[0])})  # type: ignore[type-var]
    return list(pairwise(alike))  # type: ignore[arg-type]


def _versions_at(
    place: str | Span,
    writes: Sequence[CommitProperties],
    said: Sequence[ComputedPart],
    carried: _Parts,
    rest: set[str],
) -> frozenset[str]:
    """Return the versions that computed a partition since it was last computed anew; unknown
    alone where none is known, and nothing where no commit names it.
    """
    versions: set[str] = set()
    for write, part in zip(writes, said, strict=True):
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
    # The first rows of a partition come to it as later ones do: below them may be nothing.
    return frozenset(versions - {UNKNOWN_CODE} or versions)


def _has(part: ComputedPart, place: str | Span) -> bool:
    if isinstance(place, str):
        return place in part.values
    low, high = place
    return any(
        type(begin) is type(low) and begin <= low and high <= end  # type: ignore[operator]
        for begin, end in part.partitions.spans
    )
