"""The `lakehouse.*` properties of a snapshot summary, and parts of a table with code versions."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, get_args

from lakehouse.iceberg.values.value_ranges import ValueRange, bound
from lakehouse.iceberg.values.write_context import Partitions

UNKNOWN_CODE = ""
"""The version of rows from another tool, or from a function without a source file."""


@dataclass(frozen=True)
class ComputedPart:
    """Some partitions and the code versions that computed their rows.

    Without partitions, it is the entire table or its remaining partitions.
    """

    versions: Set[str]
    values: tuple[str, ...] = ()
    merged_ranges: tuple[tuple[str, str], ...] = ()

    @property
    def is_remainder(self) -> bool:
        """Whether this is the entire table, or all partitions that no other part names."""
        return not self.values and not self.merged_ranges

    @property
    def is_unknown(self) -> bool:
        """Whether it contains rows with an unknown code version."""
        return UNKNOWN_CODE in self.versions

    def is_older_than(self, version: str) -> bool:
        """Whether it contains rows of another known code version."""
        return bool(self.versions - {UNKNOWN_CODE, version})

    @cached_property
    def partitions(self) -> Partitions:
        """The partitions, as the partitions of a run."""
        merged_ranges = tuple((bound(low), bound(high)) for low, high in self.merged_ranges)
        return Partitions(self.values, merged_ranges)

    def names_any(self, partitions: Partitions) -> bool:
        """Whether it contains any of some partitions; False if the column had another type."""
        if partitions.merged_ranges:
            return any(map(self._shares, partitions.merged_ranges))
        return not set(self.values).isdisjoint(partitions.values)

    def _shares(self, span: ValueRange) -> bool:
        low, high = span
        return any(
            type(begin) is type(low) and begin < high and low < end  # type: ignore[operator]
            for begin, end in self.partitions.merged_ranges
        )


def parts_of(
    parts: Sequence[ComputedPart], partitions: Partitions | None
) -> Sequence[ComputedPart]:
    """Return the parts that contain some partitions; all parts if `partitions` is None."""
    if partitions is None:
        return parts
    named = [part for part in parts if part.names_any(partitions)]
    return named or [part for part in parts if part.is_remainder]


def parts_text(parts: Iterable[ComputedPart]) -> str:
    return json.dumps(
        [[sorted(part.versions), part.values, part.merged_ranges] for part in parts]
    )


def parts_of_text(text: str) -> tuple[ComputedPart, ...]:
    parts = []
    for versions, values, merged_ranges in json.loads(text):
        bounds = tuple((low, high) for low, high in merged_ranges)
        parts.append(ComputedPart(frozenset(versions), tuple(values), bounds))
    return tuple(parts)


PREFIX = "lakehouse."
TAKES_OUT = f"{PREFIX}takes-out"
"""Summary key: whether rows can have been removed because their delivery was rejected."""
REJECTED_SHA256 = f"{PREFIX}rejected-sha256"
"""Summary key of a commit that removes a rejected delivery: the hash of its content."""
Kind = Literal["write", "evolution", "upkeep", "erasure", "restore"]


@dataclass(frozen=True)
class CommitProperties:
    """Origin of a snapshot: writer, inputs and reason.

    - `inputs` maps each input table to the snapshot id that was read: the watermarks of
      incremental reads.
    - `partitions` contains the partition values of the run; empty if it has none. In a
      partitioned run, `read` contains the snapshots read for these partitions, while `inputs`
      applies to the entire table.
    - `since` contains the start of an incremental read, for partitions that were not
      recomputed.
    - `merged_ranges` contains half-open bounds of range partitions, as text.
    - `takes_out`: the commit removes rows because an input lost rows of rejected deliveries.
    - `outside_partitions` contains, for each input, the values (as text) of rows that were in no
      partition when `inputs` was determined. When such a partition is defined later, it must be
      computed.
    - `code_version` is the version of the code that computed the rows; empty if unknown.
    - `keeps_rows`: rows of earlier commits remain.
    - `computed_by` carries the code versions of earlier commits, which can expire; see
      `lakehouse.iceberg.metadata.code_versions`.
    - `row_level` describes how a merge changed rows and why, if the declaration sets no mode.
    - `follows`: the change is a consequence of a finished write to another table.
    """

    kind: Kind
    write_id: str
    run_id: str = ""
    partitions: tuple[str, ...] = ()
    inputs: Mapping[str, int] = field(default_factory=dict)
    declaration: str = ""
    read: Mapping[str, int] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)
    merged_ranges: tuple[tuple[str, str], ...] = ()
    takes_out: bool = False
    outside_partitions: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    row_level: str = ""
    code_version: str = ""
    keeps_rows: bool = False
    computed_by: tuple[ComputedPart, ...] = ()
    follows: bool = False

    def to_summary(self) -> dict[str, str]:
        """Return all snapshot properties, which override those from the Spark session."""
        summary = {}
        for item in fields(self):
            write, _ = _FORMS.get(item.name, _TEXT)
            summary[_key(item.name)] = write(getattr(self, item.name))
        return summary

    @classmethod
    def from_summary(cls, summary: Mapping[str, str]) -> "CommitProperties | None":
        """Parse a snapshot summary; None for a commit that the lakehouse did not make."""
        if summary.get(f"{PREFIX}kind") not in get_args(Kind):
            return None
        values: dict[str, Any] = {"write_id": ""}
        for item in fields(cls):
            _, read = _FORMS.get(item.name, _TEXT)
            text = summary.get(_key(item.name))
            if text:
                values[item.name] = read(text)
        return cls(**values)


_STORED_NAMES = {"merged_ranges": "spans", "outside_partitions": "left-out"}
"""Keys that differ from the names of fields."""


def _key(field_name: str) -> str:
    """Return the summary key of a field of `CommitProperties`."""
    name = _STORED_NAMES.get(field_name, field_name.replace("_", "-"))
    return f"{PREFIX}{name}"


def _write_pins(pins: Mapping[str, int]) -> str:
    return json.dumps({name: str(pin) for name, pin in sorted(pins.items())})


def _read_pins(text: str) -> dict[str, int]:
    return {name: int(pin) for name, pin in json.loads(text).items()}


def _read_outside_partitions(text: str) -> dict[str, tuple[str | None, ...]]:
    return {name: tuple(values) for name, values in json.loads(text).items()}


def _read_ranges(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((low, high) for low, high in json.loads(text))


_Form = tuple[Callable[[Any], str], Callable[[str], Any]]
_TEXT: _Form = (str, str)
_FLAG: _Form = (json.dumps, "true".__eq__)
_PINS: _Form = (_write_pins, _read_pins)
_FORMS: Mapping[str, _Form] = {
    "partitions": (json.dumps, lambda text: tuple(json.loads(text))),
    "inputs": _PINS,
    "read": _PINS,
    "since": _PINS,
    "merged_ranges": (json.dumps, _read_ranges),
    "takes_out": _FLAG,
    "outside_partitions": (
        lambda values: json.dumps(dict(sorted(values.items()))),
        _read_outside_partitions,
    ),
    "keeps_rows": _FLAG,
    "computed_by": (parts_text, parts_of_text),
    "follows": _FLAG,
}
"""How the fields that are no text are written to a summary, and read from it."""
