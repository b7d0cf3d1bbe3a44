"""The result of a search, as text and as JSON; it contains no value."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from lakehouse.privacy.verifier.values import Kind

Method = Literal["values", "hmacs"]
Gap = Literal["not readable", "changed", "not looked into"]

_BY_VALUES = (
    "Distinctive values were searched in every byte, in UTF-8, Latin-1 and JSON, also in"
    " compressed files and decoded columns. Values shorter than 6 characters, and integers of"
    " fewer than 9 digits, cannot be distinguished in bytes: they were compared in the declared"
    " columns."
)
_BY_HMACS = (
    "The HMACs of the decoded values of the declared columns were compared. Bytes were not"
    " searched, since the values are no longer known."
)


@dataclass(frozen=True, order=True)
class Finding:
    """A value in a file."""

    file: str
    kind: Kind
    how: str
    """The encoding of the bytes, or what was decoded, such as `column`."""
    person: int
    """Index of the person in the search."""
    inside: str = ""
    """The part of the file, such as `gzip` or `table runs`."""
    column: str = ""
    count: int = 1

    def __str__(self) -> str:
        details = f"{self.kind} of person {self.person}, by {self.how}"
        if self.column:
            details += f", column {self.column}"
        return f"{_path(self.file, self.inside)}: {details}, {self.count} times"


@dataclass(frozen=True, order=True)
class NotProved:
    """A part of a file that the search does not cover."""

    file: str
    gap: Gap
    what: str
    inside: str = ""
    is_blocking: bool = True
    """Whether it prevents a proof."""

    def __str__(self) -> str:
        return f"{_path(self.file, self.inside)}: {self.gap}: {self.what}"


def _path(file: str, inside: str) -> str:
    return f"{file} › {inside}" if inside else file


@dataclass(frozen=True)
class ControlResult:
    """The files in which a generated value was found, and those in which it was not."""

    found: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """What a search found and what it did not cover; equal bytes give equal reports."""

    method: Method
    roots: tuple[str, ...]
    findings: tuple[Finding, ...]
    shared: tuple[Finding, ...]
    """Those that a value of a person who remains explains."""
    not_proved: tuple[NotProved, ...]
    files: int
    """The number of files that were read."""
    size_bytes: int
    """Their stored size."""
    control: ControlResult = field(default_factory=ControlResult)

    @property
    def gaps(self) -> tuple[NotProved, ...]:
        """Return what prevents a proof."""
        return tuple(item for item in self.not_proved if item.is_blocking)

    @property
    def is_proof(self) -> bool:
        """Whether no value was found, every file was read, and the control succeeded."""
        return bool(self.control.found) and not self.obstacles

    @property
    def obstacles(self) -> tuple[str, ...]:
        """Return what prevents a proof, as text."""
        return (
            *(f"found in {finding}" for finding in self.findings),
            *(f"not proved: {gap}" for gap in self.gaps),
            *(f"the control was missed in {name}" for name in self.control.missed),
        )

    @property
    def searched(self) -> str:
        """Return a sentence about the method."""
        return _BY_VALUES if self.method == "values" else _BY_HMACS

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "is_proof": self.is_proof,
            "bytes": self.size_bytes,
            "searched": self.searched,
            **json.loads(json.dumps(asdict(self))),
        }

    def as_text(self) -> str:
        """Return the report as lines of text."""
        verdict = "Proved: nothing found, every file was read, and the control was found."
        if not self.is_proof:
            verdict = f"Not proved: {len(self.obstacles)} obstacles."
        lines = [verdict, self.searched]
        lines.append(f"Read {self.files} files, {self.size_bytes} bytes.")
        lines += self.obstacles
        lines += [f"shared with people who remain: {finding}" for finding in self.shared]
        lines += [f"note: {item}" for item in self.not_proved if not item.is_blocking]
        return "\n".join(lines)
