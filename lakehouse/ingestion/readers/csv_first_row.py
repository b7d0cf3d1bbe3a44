"""Read the first row of a CSV file from its bytes before Arrow sees it.

Arrow uses 16 KB for each column whose type it infers; a megabyte of commas would need 16 GB.
Therefore the number of fields is checked first.
"""

import re
from codecs import BOM_UTF8

from lakehouse.errors import FileRejected
from lakehouse.ingestion.readers.csv_header import expected_header
from lakehouse.ingestion.readers.csv_rows import csv_values, row_pattern
from lakehouse.tables.feed import Feed
from lakehouse.tables.quoting import shown

MORE_COLUMNS = 1000
"""How many undeclared columns a file may have."""
_REPLACED = "\ufffd"
_SAVE_AS_UTF8 = "Save it as UTF-8 and put it back."
_SEPARATOR_LINE = re.compile(rb'("?sep=."?[,;|\t]*)[\r\n]', re.IGNORECASE)


def header_names(feed: Feed, head: bytes) -> tuple[str, ...]:
    """Return the column names in the first row of a file's first megabyte."""
    text = head.removeprefix(BOM_UTF8)
    if not text.strip():
        raise FileRejected(
            "an empty file",
            found="no text in it",
            expected=f"a header with {expected_header(feed)}",
            next_step="Correct the file and put it back.",
        )
    check_no_separator_line(text)
    most_fields = len(feed.column_names) + MORE_COLUMNS
    row = first_row(text.lstrip(b"\r\n"), most_fields, feed.delimiter)
    names = tuple(csv_values(row, feed.delimiter)) if row is not None else ()
    if _REPLACED in "".join(names) or (
        not names and _REPLACED in text.decode("utf-8", "replace")
    ):
        raise FileRejected(
            "not UTF-8",
            found="other bytes in the header",
            expected="UTF-8 text",
            next_step=_SAVE_AS_UTF8,
        )
    if not feed.required_names <= {*feed.named(names)}:
        _check_no_lines_before(feed, text)
    if not names:
        raise FileRejected(
            "no header",
            found="a first row without an end, which may be a quote that is never closed",
            expected=expected_header(feed),
            next_step="Correct the file and put it back.",
        )
    return names


def check_no_separator_line(text: bytes) -> None:
    """Reject a file that starts with a line such as `sep=;`, which only Excel reads."""
    if match := _SEPARATOR_LINE.match(text.lstrip(b"\r\n")):
        raise lines_before_header(f"{shown(match[1].decode('utf-8', 'replace'))} in line 1", 1)


def lines_before_header(found: str, last: int) -> FileRejected:
    """Return the error for a file with lines before its header, up to a line number."""
    which = "line 1" if last == 1 else f"lines 1 to {last}"
    return FileRejected(
        "text before the header",
        found=found,
        expected="the header in the first line",
        next_step=f"Delete {which} of the file and put it back.",
    )


def _check_no_lines_before(feed: Feed, text: bytes) -> None:
    """Reject a file in which a later line has the names of all required columns."""
    for number, line in enumerate(text.splitlines()[1:100], start=2):
        names = csv_values(line, feed.delimiter)
        if feed.required_names <= {*feed.named(names)}:
            raise lines_before_header(f"the header in line {number}", number - 1)


def first_row(text: bytes, most_fields: int, delimiter: str = ",") -> bytes | None:
    """Return the first row without its line end, or None if it ends inside a quoted field.

    :raises FileRejected: it has more than `most_fields` fields.
    """
    pattern = row_pattern(delimiter)
    match = pattern.match(text) or pattern.fullmatch(text + b"\n")
    if match is None:
        return None
    row = match[0].rstrip(b"\r\n")
    is_long = row.count(delimiter.encode()) >= most_fields
    if is_long and len(csv_values(row, delimiter)) > most_fields:
        raise _too_many(most_fields)
    return row


def _too_many(most_fields: int) -> FileRejected:
    return FileRejected(
        "too many columns",
        found=f"a first row of more than {most_fields:,} fields",
        expected=f"no more than {MORE_COLUMNS:,} more than the declared ones",
        next_step=("Put the column names in the first row, and leave out undeclared ones."),
    )
