"""Iterate over the objects of a JSON file: JSON Lines, or one array of objects.

Numbers keep their digits. The file is parsed in blocks, so memory use is limited to one block
and one object.
"""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from lakehouse.errors import FileRejected
from lakehouse.ingestion.readers.byte_source import Readable, refuse_damaged

LONGEST_OBJECT = 16 << 20
"""The maximum length of an object, in characters."""
_BLOCK_BYTES = 1 << 20
_SPACE = re.compile(r"[ \t\r\n]*")


class Number(str):
    """A number as it is written in the file."""

    __slots__ = ()


class _RepeatedKey(Exception):
    """An object has a key twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise _RepeatedKey
    return values


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=Number, parse_int=Number, parse_constant=Number
)


class JsonRecords:
    """The objects of a file in order, each with its text; iteration rejects invalid JSON."""

    def __init__(self, content: Readable) -> None:
        self._content = content
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._is_over = False
        self._rows = 0
        self.is_array = False
        """Whether the objects are in one array; known after the first one."""

    def __iter__(self) -> Iterator[tuple[dict[str, Any], str]]:
        first = self._next_character()
        if not first:
            raise _rejected("an empty file", "no object", "JSON objects, or []")
        self.is_array = first == "["
        self._at += self.is_array
        while self._has_next():
            yield self._record()

    def _has_next(self) -> bool:
        character = self._next_character()
        if not self.is_array:
            return bool(character)
        if character == "]":
            self._at += 1
            if self._next_character():
                raise self._invalid("text after the array")
            return False
        if self._rows:
            if character != ",":
                raise self._invalid("no comma between two objects of the array")
            self._at += 1
            self._next_character()
        return True

    def _record(self) -> tuple[dict[str, Any], str]:
        self._rows += 1
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
                break
            except _RepeatedKey:
                raise self._invalid("an object that has a key twice") from None
            except RecursionError:
                raise self._invalid("values nested too deeply") from None
            except json.JSONDecodeError:
                # The block may end within the object.
                if len(self._text) - self._at > LONGEST_OBJECT or not self._read():
                    is_cut = self._is_over and self._text.startswith("{", self._at)
                    what = "text that is no JSON, or is cut off" if is_cut else "no JSON"
                    raise self._invalid(what) from None
        if not isinstance(value, dict):
            raise self._invalid("a value that is no object")
        text, self._at = self._text[self._at : end], end
        return value, text

    def _next_character(self) -> str:
        """Return the next character that is not white space, or an empty string at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read():
                return ""

    def _read(self) -> bool:
        """Read another block; return False at the end of the file."""
        if self._is_over:
            return False
        block = refuse_damaged(lambda: self._content.read(_BLOCK_BYTES))
        self._is_over = not block
        try:
            new = self._decoder.decode(block, final=self._is_over)
        except UnicodeDecodeError:
            # Raised outside of the handler: the original error contains the bytes.
            new = None
        if new is None:
            raise _rejected(
                "not UTF-8", f"other bytes after row {self._rows}", "UTF-8 text"
            ) from None
        self._text, self._at = self._text[self._at :] + new, 0
        return True

    def _invalid(self, found: str) -> FileRejected:
        expected = "objects such as {...}, one in each line or in one array"
        return _rejected("not valid JSON", f"{found} at row {self._rows}", expected)


def raw_json(value: Any) -> str:
    """Return a value of a record as JSON, with numbers as written."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        parts = (f"{json.dumps(k, ensure_ascii=False)}:{raw_json(v)}" for k, v in value.items())
        return f"{{{','.join(parts)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(raw_json, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _rejected(reason: str, found: str, expected: str) -> FileRejected:
    step = "Correct the file and put it back."
    return FileRejected(reason, found=found, expected=expected, next_step=step)
