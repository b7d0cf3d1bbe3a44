"""Watermarks of a run that changed no row: in a table property, since it makes no commit."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakehouse.iceberg.metadata.commit_record import PREFIX

UNCHANGED_PROPERTY = f"{PREFIX}unchanged"


@dataclass(frozen=True)
class UnchangedRun:
    """The inputs of the last run that changed no row, and the code version of the existing rows.

    It applies only to the snapshot of main that it names, so that a rollback invalidates it.
    """

    snapshot_id: int | None = None
    """None if there was no such run."""
    inputs: Mapping[str, int] = field(default_factory=dict)
    code_version: str = ""
    """Empty if unknown."""

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "UnchangedRun":
        """Parse the property of a table."""
        if UNCHANGED_PROPERTY not in properties:
            return cls()
        record = json.loads(properties[UNCHANGED_PROPERTY])
        inputs = {source: int(pinned) for source, pinned in record["inputs"].items()}
        return cls(int(record["snapshot"]), inputs, record.get("code_version", ""))

    def to_property(self) -> str:
        """Return the value of the property."""
        record: dict[str, Any] = {
            "snapshot": str(self.snapshot_id),
            "inputs": {source: str(pinned) for source, pinned in self.inputs.items()},
        }
        if self.code_version:
            record["code_version"] = self.code_version
        return json.dumps(record)
