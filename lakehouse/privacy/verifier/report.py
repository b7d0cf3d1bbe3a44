"""What a search found, as text and as JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from lakehouse.privacy.verifier.findings import Compared, Finding, NotProved

Method = Literal["values", "hmacs"]

_BY_VALUES = (
    "Distinctive values were searched in every byte, as UTF-8, UTF-16, Latin-1, hex, base64 and"
    " escaped for JSON, URLs, HTML, SQL and CSV, with the 16 characters that Iceberg keeps of"
    " bounds. Values shorter than 6 characters, and integers of fewer than 9 digits, cannot be"
    " told from others as bytes: they were compared in the declared columns alone."
)
_BY_HMACS = (
    "The HMACs of the decoded values of the declared columns were compared. Bytes were not"
    " searched, since the values are no longer known."
)


@dataclass(frozen=True)
class FilesRead:
    """How much was read of one kind of file."""

    files: int
    size_bytes: int


@dataclass(frozen=True)
class ControlResult:
    """Whether a planted person was found, by class of place."""

    found: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    """With the file that was not found."""


@dataclass(frozen=True)
class Report:
    """Where people still are, and what is not proved; no value is in it, and two searches of the
    same bytes give the same report.
    """

    method: Method
    roots: tuple[str, ...]
    findings: tuple[Finding, ...]
    """What nobody who remains explains."""
    shared: tuple[Finding, ...]
    """What the value of somebody who remains explains."""
    not_proved: tuple[NotProved, ...]
    compared: tuple[Compared, ...]
    read: Mapping[str, FilesRead]
    """What was read, by kind of file; `bytes` are those that nothing decodes."""
    places: tuple[str, ...]
    """The classes of place that there are."""
    control: ControlResult = field(default_factory=ControlResult)
    """Of the control that ran; empty where none did."""

    @property
    def is_void(self) -> bool:
        """Whether the control failed: then nothing that was not found is proved to be gone."""
        return bool(self.control.missed)

    @property
    def is_controlled(self) -> bool:
        """Whether a planted person was searched at all."""
        return bool(self.control.found or self.control.missed)

    @property
    def gaps(self) -> tuple[NotProved, ...]:
        """Return what stands in the way of a proof."""
        return tuple(item for item in self.not_proved if item.is_blocking)

    @property
    def is_proof(self) -> bool:
        """Whether nothing of anybody is there, every byte was read, and the control was found."""
        return self.is_controlled and not (self.is_void or self.findings or self.gaps)

    @property
    def obstacles(self) -> tuple[str, ...]:
        """Return in words what stands in the way of a proof, each with its place."""
        return (
            *(f"found in {one}" for one in self.findings),
            *(f"not proved: {one}" for one in self.gaps),
            *(f"the control was missed in {one}" for one in self.control.missed),
        )

    @property
    def files(self) -> int:
        """Return how many files were read."""
        return sum(read.files for read in self.read.values())

    @property
    def size_bytes(self) -> int:
        """Return how many bytes were read, as they are stored."""
        return sum(read.size_bytes for read in self.read.values())

    def as_json(self) -> dict[str, Any]:
        """Return the report as values of JSON."""
        return {
            "is_proof": self.is_proof,
            "is_void": self.is_void,
            "files": self.files,
            "bytes": self.size_bytes,
            "searched": self.searched,
            **json.loads(json.dumps(asdict(self))),
        }

    @property
    def searched(self) -> str:
        """Return in a sentence what was searched, and what was not."""
        return _BY_VALUES if self.method == "values" else _BY_HMACS

    def as_text(self) -> str:
        """Return the report for people to read."""
        lines = [self._verdict, self.searched, self._read_line]
        lines += _section("Found", self.findings)
        lines += _section("Shared with people who remain", self.shared)
        lines += _section("Not proved", self.gaps)
        lines += _section("Said", [item for item in self.not_proved if not item.is_blocking])
        lines += _section("The control was missed in", self.control.missed)
        columns = [f"{item.file}: {', '.join(item.columns)}" for item in self.compared]
        lines += _section("Columns compared", columns)
        return "\n".join(lines)

    @property
    def _verdict(self) -> str:
        if self.is_void:
            return "Void: the verifier did not find what was planted as a control."
        if self.findings:
            return f"Residues: {len(self.findings)} places have a person."
        if self.gaps:
            return f"Not proved: {len(self.gaps)} gaps stand in the way."
        if not self.is_controlled:
            return "Nothing found, and no control was searched: this is no proof."
        return "Proved: nothing found, every byte was read, and the control was found."

    @property
    def _read_line(self) -> str:
        kinds = [
            f"{kind} {read.files} ({read.size_bytes} bytes)" for kind, read in self.read.items()
        ]
        return f"Read {self.files} files, {self.size_bytes} bytes: {', '.join(kinds)}."


def _section(title: str, items: Any) -> list[str]:
    return [f"{title}:", *(f"  {item}" for item in items)] if items else []
