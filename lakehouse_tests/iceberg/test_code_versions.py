"""The code versions of a table's rows, also after its older commits expired."""

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from lakehouse.iceberg.commit.kept_watermarks import missing_properties
from lakehouse.iceberg.metadata.code_versions import computed_parts
from lakehouse.iceberg.metadata.commit_record import CommitProperties, ComputedPart, parts_of
from lakehouse.iceberg.metadata.snapshots import History, Snapshot
from lakehouse.iceberg.values.write_context import Partitions

pytestmark = pytest.mark.unit

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BEFORE = CommitProperties("write", "w")
"""What a commit says of a version that recorded no code."""


def history(*commits: CommitProperties | str, first: int = 1) -> History:
    """A linear history; a text is the operation of a commit that is not of the lakehouse.

    :param first: the number of the first snapshot that is kept.
    """
    snapshots = {}
    for number, commit in enumerate(commits, start=first):
        counted = {"added-records": "1", "total-records": str(number)}
        is_ours = isinstance(commit, CommitProperties)
        summary = {**commit.to_summary(), **counted} if is_ours else counted
        operation = "append" if is_ours else commit
        snapshots[number] = Snapshot(number, number - 1 or None, 0, NOW, operation, summary)
    return History("silver.clean", snapshots, {"main": max(snapshots)}, (), {})


def by(version: str, *, adds: bool = False) -> CommitProperties:
    return CommitProperties("write", "w", code_version=version, keeps_rows=adds)


def days(version: str, low: str, high: str, *, adds: bool = False) -> CommitProperties:
    """A commit of the days of January 2026 from one to before another."""
    span = (f"2026-01-{low}", f"2026-01-{high}")
    return replace(by(version, adds=adds), merged_ranges=(span,), partitions=("some",))


def told(found: History) -> dict[str, list[str]]:
    """The partitions, or `all` of a table, by versions."""
    shown = {}
    for part in computed_parts(found):
        merged_ranges = [f"{low[-2:]}-{high[-2:]}" for low, high in part.merged_ranges]
        versions = "+".join(version or "?" for version in sorted(part.versions))
        shown[versions] = [*part.values, *merged_ranges] or ["all"]
    return shown


@pytest.mark.parametrize(
    "commits, versions",
    [
        ([by("a")], "a"),
        ([by("a"), by("b")], "b"),
        # Where only what came is computed, older rows stay.
        ([by("a"), by("b", adds=True)], "a+b"),
        ([by("a"), by("b", adds=True), by("b")], "b"),
        ([BEFORE, by("b", adds=True)], "?+b"),
        ([by("a"), "append"], "?+a"),
        ([by("a"), "replace"], "a"),
        ([by("a"), CommitProperties("evolution", "e")], "a"),
    ],
)
def test_a_whole_table_is_of_the_code_that_computed_its_rows(commits, versions: str) -> None:
    assert told(history(*commits)) == {versions: ["all"]}


def test_partitions_are_of_the_code_that_computed_each() -> None:
    assert told(history(days("a", "01", "10"), days("b", "04", "06"))) == {
        "a": ["01-04", "06-10"],
        "b": ["04-06"],
    }


def test_a_partition_that_later_code_added_rows_to_is_of_both() -> None:
    written = (days("a", "01", "03"), days("b", "02", "03", adds=True))
    assert told(history(*written)) == {"a": ["01-02"], "a+b": ["02-03"]}
    assert told(history(*written, days("b", "01", "03"))) == {"b": ["01-03"]}


def test_partitions_that_are_values_are_told_by_name() -> None:
    north, south = (replace(by("a"), partitions=(name,)) for name in ("north", "south"))
    again = replace(north, code_version="b")
    assert told(history(north, south, again)) == {"a": ["south"], "b": ["north"]}


@pytest.mark.parametrize(
    "commits",
    [
        [days("a", "01", "10"), days("b", "04", "06")],
        [days("a", "01", "10"), "replace"],
        [by("a"), by("b", adds=True)],
        [replace(by("a"), partitions=("north",)), replace(by("b"), partitions=("south",))],
    ],
)
def test_what_earlier_commits_said_is_carried_on_before_they_expire(commits) -> None:
    whole = history(*commits)
    carried = missing_properties(whole)

    assert told(history(carried, first=9)) == told(whole)
    assert missing_properties(history(*commits, carried)) is None


def test_the_rest_of_a_table_is_unknown_where_its_first_commits_are_gone() -> None:
    rest = {"?": ["all"]}
    left = history(days("a", "01", "03"), days("b", "02", "03"), first=9)
    assert told(left) == {"a": ["01-02"], "b": ["02-03"], **rest}
    carried = missing_properties(left)
    assert told(history(carried, days("b", "05", "06"), first=11)) == {
        "a": ["01-02"],
        "b": ["02-03", "05-06"],
        **rest,
    }


def test_a_partition_is_of_the_parts_that_name_it_or_of_the_rest() -> None:
    def parts_at(day: int) -> list[frozenset[str]]:
        span = (date(2026, 1, day), date(2026, 1, day + 1))
        found = parts_of(computed_parts(left), Partitions(("some",), (span,)))
        return [frozenset(part.versions) for part in found]

    left = history(days("a", "01", "03"), days("b", "02", "03"), first=9)
    assert parts_at(1) == [frozenset({"a"})]
    assert parts_at(2) == [frozenset({"b"})]
    assert parts_at(3) == [frozenset({""})]


def test_other_code_is_older_and_unknown_code_is_not() -> None:
    assert ComputedPart(frozenset({"a"})).is_older_than("b")
    assert ComputedPart(frozenset({"", "a", "b"})).is_older_than("b")
    assert not ComputedPart(frozenset({"", "b"})).is_older_than("b")
    assert ComputedPart(frozenset({"", "b"})).is_unknown
