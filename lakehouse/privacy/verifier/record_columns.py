"""Values of records, as JSON and Avro give them, by the path of their field: texts are searched,
declared fields are compared.
"""

import json
from typing import Any

from lakehouse.privacy.verifier.column_values import spark_text
from lakehouse.privacy.verifier.search_state import FilePart, TextToSearch

_BATCH_BYTES = 1024 * 1024
_JSON_DEPTH = 4
"""How often JSON stands in a string of JSON: as deep as anything of the lakehouse goes."""
_SOURCE_BYTES = 64 * 1024
"""Of JSON in which each of its values is looked for: in more of it that would take long."""
_OPENING = (b"{", b"[")
_Path = tuple[str, ...]


class RecordColumns:
    """Collects the values of records, and searches them many at a time."""

    def __init__(self, part: FilePart) -> None:
        self._part = part
        self._texts: list[TextToSearch] = []
        self._columns: dict[_Path, list[TextToSearch]] = {}
        self._bytes = 0
        self._names = [name.encode() for name in part.names]

    def add(
        self, record: Any, row: int | None, path: _Path = (), source: bytes | None = None
    ) -> None:
        """Add all values of a record.

        :param source: the JSON that it is from, where that is searched too.
        """
        self._add(record, row, path, source, 0)
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

    def _add(
        self, value: Any, row: int | None, path: _Path, source: bytes | None, depth: int
    ) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                name = str(key)
                self._add_leaf(name, row, (), source)
                # Other parts of a path may be values themselves, and are told to nobody.
                declared = (name,) if name.strip().lower() in self._part.names else ()
                self._add(inner, row, (*path, *declared), source, depth)
        elif isinstance(value, list | tuple):
            for inner in value:
                self._add(inner, row, path, source, depth)
        elif value is not None:
            content = self._add_leaf(value, row, path, source)
            if depth < _JSON_DEPTH and self._says_more(content):
                inner_source = content if len(content) <= _SOURCE_BYTES else None
                self._add(_json_in(content), row, path, inner_source, depth + 1)

    def _says_more(self, content: bytes) -> bool:
        """Whether a text may be JSON that says more than its bytes: by escapes, or by the names
        of columns.
        """
        if content[:1] not in _OPENING:
            return False
        lowered = content.lower()
        return b"\\" in content or any(name in lowered for name in self._names)

    def _add_leaf(
        self, value: Any, row: int | None, path: _Path, source: bytes | None
    ) -> bytes:
        content = _content(value)
        declared = tuple(name for name in path if name.strip().lower() in self._part.names)
        text = TextToSearch(content, ".".join(declared), row)
        # What stands in its source as it is, is found there.
        if source is None or content not in source:
            self._texts.append(text)
            self._bytes += len(content)
        if declared:
            self._bytes += len(content)
            self._columns.setdefault(declared, []).append(text)
        return content


def _content(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return (spark_text(value) or "").encode()


def _json_in(content: bytes) -> Any:
    """Return what a text says as JSON; None where it is none."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
