"""Values of records, as JSON and Avro give them, by the path of their field: texts are searched,
declared fields are compared.
"""

import json
from collections.abc import Iterator
from typing import Any

from lakehouse.privacy.verifier.column_values import spark_text
from lakehouse.privacy.verifier.search_state import FilePart, TextToSearch

_BATCH_BYTES = 1024 * 1024
_JSON_DEPTH = 4
"""How often JSON stands in a string of JSON: as deep as anything of the lakehouse goes."""


class RecordColumns:
    """Collects the values of records, and searches them many at a time."""

    def __init__(self, part: FilePart) -> None:
        self._part = part
        self._texts: list[TextToSearch] = []
        self._columns: dict[tuple[str, ...], list[TextToSearch]] = {}
        self._bytes = 0

    def add(self, record: Any, row: int | None, path: tuple[str, ...] = ()) -> None:
        """Add all values of a record."""
        for inner, value in _leaves(record, path, 0):
            self._add_value(inner, value, row)
        if self._bytes >= _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Search what was collected."""
        self._part.search_texts(self._texts)
        for path, values in self._columns.items():
            self._part.search_values(path, values)
        self._texts = []
        self._columns = {}
        self._bytes = 0

    def _add_value(self, path: tuple[str, ...], value: Any, row: int | None) -> None:
        content = _content(value)
        # Other parts of a path may be values themselves, and are told to nobody.
        names = self._part.names
        declared = tuple(part for part in path if part.strip().lower() in names)
        text = TextToSearch(content, ".".join(declared), row)
        self._bytes += len(content)
        self._texts.append(text)
        if declared:
            self._columns.setdefault(declared, []).append(text)


def _content(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return (spark_text(value) or "").encode()


def _leaves(
    value: Any, path: tuple[str, ...], depth: int
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each value with its path; JSON in a text is taken for what it says, too."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (), str(key)
            yield from _leaves(inner, (*path, str(key)), depth)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner, path, depth)
    elif value is not None:
        yield path, value
        yield from _leaves(_json_in(value, depth), path, depth + 1)


def _json_in(value: Any, depth: int) -> Any:
    """Return what a text says as JSON; None where it is none."""
    opens = ("{", "[") if isinstance(value, str) else (b"{", b"[")
    is_text = isinstance(value, str | bytes)
    if not is_text or depth >= _JSON_DEPTH or not value.startswith(opens):
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None
