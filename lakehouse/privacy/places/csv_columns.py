"""Ids in files of columns with a header, such as somebody's export: short ones too, since the
header says of which column they are.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from lakehouse.privacy.places.wanted_values import WantedValues
from lakehouse.tables.person import is_distinctive

_ENDINGS = (".csv", ".tsv", ".psv")
_DELIMITERS = (b",", b"\t", b";", b"|")
_LINE = re.compile(rb"[^\r\n]*")

Field = tuple[int, int]


def has_columns(file: Path) -> bool:
    """Whether the name of a file says that it has columns with a header."""
    return file.suffix.lower() in _ENDINGS


def patch_columns(wanted: WantedValues, file: Path, *, is_dry: bool) -> int:
    """Overwrite the values that are not distinctive in a file's columns, by as many bytes, and
    return how many there were; the distinctive ones are found as bytes.
    """
    content = file.read_bytes()
    fields = list(_fields(wanted, content))
    if is_dry or not fields:
        return len(fields)
    with file.open("r+b", buffering=0) as opened:
        for start, end in fields:
            os.pwrite(opened.fileno(), b"*" * (end - start), start)
        os.fsync(opened.fileno())
    return len(fields)


def _fields(wanted: WantedValues, content: bytes) -> Iterator[Field]:
    """Yield where such values stand, without the quotes around them."""
    header = _LINE.match(content)
    line = header[0] if header else b""
    delimiter = max(_DELIMITERS, key=line.count)
    names = [
        name.strip(b'" \xef\xbb\xbf').decode(errors="replace") for name in line.split(delimiter)
    ]
    if not wanted.columns.keys() & {*names}:
        return
    number = 0
    for match in _pattern(delimiter).finditer(content, len(line)):
        column = names[number] if number < len(names) else ""
        start, end = match.span("plain" if match["quoted"] is None else "quoted")
        text = content[start:end].decode(errors="replace")
        if _goes(wanted, column, text):
            yield start, end
        number = number + 1 if match["after"] == delimiter else 0


def _pattern(delimiter: bytes) -> re.Pattern[bytes]:
    sign = re.escape(delimiter)
    return re.compile(
        rb'(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>[^"\r\n' + sign + rb"]*))"
        rb"(?P<after>" + sign + rb"|\r?\n|\r|\Z)"
    )


def _goes(wanted: WantedValues, column: str, text: str) -> bool:
    if not column or is_distinctive(text.strip()) or not wanted.holds(column, text):
        return False
    return not wanted.is_shared(text)
