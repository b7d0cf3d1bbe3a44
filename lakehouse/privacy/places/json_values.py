"""Values in JSON: their column is known by the key, and what is left is JSON of the same types.

A number becomes 0, a text `[erased]`. Of a row in a sample, which Dagster keeps as a record of a
table, all goes: it is the person's as a whole.
"""

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from lakehouse.privacy.places.overwriting import overwritten
from lakehouse.privacy.places.packed_text import unpacked
from lakehouse.privacy.places.scrubbed_place import ERASED
from lakehouse.privacy.places.value_finder import ValueFinder

CLASS = "__class__"
_NAMES = frozenset(
    {
        CLASS,
        "__enum__",
        "run_id",
        "root_run_id",
        "parent_run_id",
        "step_key",
        "step_handle",
        "solid_handle",
        "node_handle",
        "check_name",
        "job_name",
        "pipeline_name",
        "op_name",
        "event_type_value",
        "snapshot_id",
        "job_snapshot_id",
        "pipeline_snapshot_id",
        "execution_plan_snapshot_id",
        # Of our own records, which take no others.
        "kind",
        "saying",
        "severity",
    }
)
"""Keys whose values are names by which Dagster finds things: without them it reads nothing."""
_CARRIERS = frozenset({"value", "text", "data", "entry_data"})
"""Keys below which Dagster keeps a value that metadata has under a name."""

_HALF = re.compile("[\ud800-\udfff]")


@dataclass
class JsonScrubber:
    """Overwrites values in what JSON holds, and counts them."""

    finder: ValueFinder
    erased: int = 0
    shared: int = 0
    kept_names: int = 0
    """Values in names by which things are found, which are left."""

    def scrub(self, node: Any, column: str = "") -> Any:
        """Return a piece of JSON without the values.

        :param column: of which column it is; nothing where that is not known.
        """
        if isinstance(node, dict):
            return self._object(node, column)
        if isinstance(node, list):
            return [self.scrub(item, column) for item in node]
        if isinstance(node, str):
            return self.text(node, column)
        if isinstance(node, int | float) and not isinstance(node, bool):
            return self._number(node, column)
        return node

    def text(self, text: str, column: str = "") -> str:
        """Return a text without the values: JSON, a value of a column, or any other."""
        wanted = self.finder.wanted
        if column and wanted.holds(column, text):
            return ERASED if self._goes(text) else text
        content = text.encode("utf-8", "surrogatepass")
        if not self.finder.may_hold(content):
            return text
        before = self.erased
        if (structure := read_structure(text)) is not None:
            scrubbed = self.scrub(structure)
            return written_like(text, scrubbed) if self.erased > before else text
        if (inner := unpacked(text)) is not None:
            changed = replace(inner, text=self.text(inner.text))
            return changed.packed() if self.erased > before else text
        result = overwritten(self.finder, content)
        self.erased += result.erased
        self.shared += result.shared
        return result.content.decode("utf-8", "surrogatepass")

    def _object(self, node: dict[str, Any], column: str) -> dict[str, Any]:
        if node.get(CLASS) == "AssetKey":
            self._name(node)
            return node
        if node.get(CLASS) == "TableRecord" and self._is_of_person(node.get("data")):
            return {**node, "data": {name: _gone(cell) for name, cell in node["data"].items()}}
        scrubbed: dict[str, Any] = {}
        for key, value in node.items():
            if key in _NAMES:
                scrubbed[key] = self._name(value)
                continue
            # Those of Dagster's own objects are names of fields.
            name = key if CLASS in node else self.text(key)
            while name in scrubbed:
                name += "*"
            scrubbed[name] = self.scrub(value, self._column(node, key, column))
        return scrubbed

    def _column(self, node: dict[str, Any], key: str, column: str) -> str:
        """Return of which column the value of a key is: its own name, else that of the metadata
        that it stands in.
        """
        if key in self.finder.wanted.columns:
            return key
        if CLASS not in node or key not in _CARRIERS:
            return ""
        label = node.get("label")
        return label if isinstance(label, str) else column

    def _is_of_person(self, row: Any) -> bool:
        """Whether a row has a value of a person that nobody else has; what others have is
        counted.
        """
        if not isinstance(row, dict):
            return False
        values = [cell for column, cell in row.items() if self._holds(column, cell)]
        erased = sum(map(self._goes, map(_as_text, values)))
        return erased > 0

    def _holds(self, column: str, cell: Any) -> bool:
        # A row that was overwritten is nobody's any more.
        return bool(cell) and self.finder.wanted.holds(column, _as_text(cell))

    def _number(self, number: float, column: str) -> float:
        text, wanted = _as_text(number), self.finder.wanted
        is_wanted = wanted.holds(column, text) or text in wanted.numbers
        # Zero is what stands where a number stood.
        return 0 if number and is_wanted and self._goes(text) else number

    def _goes(self, text: str) -> bool:
        """Count a value, and return whether it is overwritten."""
        is_shared = self.finder.wanted.is_shared(text)
        self.shared += is_shared
        self.erased += not is_shared
        return not is_shared

    def _name(self, node: Any) -> Any:
        content = json.dumps(node, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self.kept_names += len(self.finder.find(content).spans)
        return node


def read_structure(text: str) -> Any | None:
    """Return what a text holds as JSON of objects or lists; None where it is none."""
    if text[:1] not in ("{", "["):
        return None
    try:
        structure = json.loads(text)
        # What is nested too deeply to be walked through is searched as text.
        json.dumps(structure, indent=1)
    except (ValueError, RecursionError):
        return None
    return structure


def written_like(text: str, structure: Any) -> str:
    """Write JSON in the way of a text: with its spaces and escapes."""
    is_compact = '": ' not in text and '":\n' not in text
    separators = (",", ":") if is_compact else None
    written = json.dumps(structure, ensure_ascii=text.isascii(), separators=separators)
    # Half a character has no other form than its escape.
    is_whole = text.isascii() or not _HALF.search(written)
    return written if is_whole else json.dumps(structure, separators=separators)


def _as_text(value: Any) -> str:
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_whole else str(value)


def _gone(cell: Any) -> Any:
    if isinstance(cell, int | float):
        return cell if isinstance(cell, bool) else 0
    return None if cell is None else ERASED
