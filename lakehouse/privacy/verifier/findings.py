"""What is said of a file: where a person is in it, and what of it is not proved."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from lakehouse.privacy.verifier.sought_values import Kind

Gap = Literal[
    "not readable", "not read", "changed", "not provable", "not compared", "not looked into"
]


@dataclass(frozen=True, order=True)
class Finding:
    """One place in which a person is; the value itself is nowhere in it."""

    place: str
    """What the file is to the lakehouse, see `places`."""
    file: str
    kind: Kind
    how: str
    """The encoding of bytes, or what was decoded, such as 'column'."""
    person: int
    """Which of the people, from 0."""
    inside: str = ""
    """Where in the file, such as 'row group 0', 'gzip' or 'table runs'."""
    column: str = ""
    offset: int | None = None
    """Byte of the first hit, where bytes were searched."""
    row: int | None = None
    """Number of the first row, from 1, where rows were read."""
    count: int = 1

    @property
    def spot(self) -> tuple[str, ...]:
        """Return what findings of one spot have in common."""
        return (self.file, self.inside, self.column, self.kind, self.how, str(self.person))

    def __str__(self) -> str:
        where = " › ".join(filter(None, (self.file, self.inside)))
        details = [f"{self.kind} of person {self.person}", f"by {self.how}"]
        if self.column:
            details.append(f"column {self.column}")
        if self.offset is not None:
            details.append(f"byte {self.offset}")
        if self.row is not None:
            details.append(f"row {self.row}")
        return f"{self.place}: {where}: {', '.join(details)}, {self.count} times"


@dataclass(frozen=True, order=True)
class NotProved:
    """What of a file the search says nothing about."""

    file: str
    gap: Gap
    what: str
    inside: str = ""
    is_blocking: bool = True
    """Whether nothing is proved as long as it stands."""

    def __str__(self) -> str:
        where = " › ".join(filter(None, (self.file, self.inside)))
        return f"{where}: {self.gap}: {self.what}"


@dataclass(frozen=True, order=True)
class Compared:
    """The columns of a file whose decoded values were compared."""

    file: str
    columns: tuple[str, ...]


class FindingsByPlace:
    """Findings as they come, those of one spot in one."""

    def __init__(self) -> None:
        self._findings: dict[tuple[str, ...], Finding] = {}

    def __iter__(self) -> Iterator[Finding]:
        return iter(sorted(self._findings.values(), key=_order))

    def add(self, finding: Finding) -> None:
        """Add a finding to those of its spot; the first offset and the first row are kept."""
        known = self._findings.get(finding.spot)
        if known is None:
            self._findings[finding.spot] = finding
        else:
            self._findings[finding.spot] = replace(
                known,
                count=known.count + finding.count,
                row=finding.row if known.row is None else known.row,
                offset=finding.offset if known.offset is None else known.offset,
            )


def _order(finding: Finding) -> tuple[str, ...]:
    return (finding.place, *finding.spot)
