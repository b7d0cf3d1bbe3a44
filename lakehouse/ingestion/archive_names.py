"""Collision-free names of archived and rejected files: each contains part of the content hash."""

from datetime import datetime
from hashlib import sha256 as hash_of
from pathlib import PurePosixPath

from lakehouse.errors import FileRejected
from lakehouse.storage.rejected_files import REASON_ENDING
from lakehouse.tables.feed import Feed
from lakehouse.tables.quoting import quoted

HASH_DIGITS = 12
# With 64 hash digits, `.reason.json` and the suffix of a temporary copy, a name stays within
# 255 bytes.
_LONGEST_STEM_BYTES = 140
_LONGEST_SUFFIX_BYTES = 20
# The limit of S3 is 1,024.
_LONGEST_KEY_BYTES = 1000
_ALL_DIGITS = 64
_LONG = "long"
"""Folder of files whose own folders would make the key too long."""


def archive_key(
    feed: Feed, source_file: str, sha256: str, ingested_at: datetime, digits: int = HASH_DIGITS
) -> str:
    """Return `archive/<feed>/<date>/<name>`; the date is the ingest date in the feed's zone."""
    day = ingested_at.astimezone(feed.zone).date().isoformat()
    return f"{feed.archive}{day}/{hashed_name(feed, source_file, sha256, digits)}"


def rejected_key(feed: Feed, source_file: str, sha256: str, digits: int = HASH_DIGITS) -> str:
    return f"{feed.rejected}{hashed_name(feed, source_file, sha256, digits)}"


def hashed_name(feed: Feed, source_file: str, sha256: str, digits: int = HASH_DIGITS) -> str:
    """Return `fruit.1a2b3c4d5e6f.csv` for `fruit.csv`, with sub-folders; cut a name that is too
    long.

    If any key made from the name would be too long for S3, `long/<hash>` replaces the
    sub-folders.
    """
    full_name = _full_name(feed, source_file, sha256, digits)
    longest = _full_name(feed, source_file, "0" * _ALL_DIGITS, _ALL_DIGITS)
    # The longest key made from a name.
    if len(_bytes(f"{feed.rejected}{longest}{REASON_ENDING}")) <= _LONGEST_KEY_BYTES:
        return full_name
    path = PurePosixPath(full_name)
    return f"{_LONG}/{hash_of(_bytes(str(path.parent))).hexdigest()}/{path.name}"


def _full_name(feed: Feed, source_file: str, sha256: str, digits: int) -> str:
    path = PurePosixPath(source_file)
    end = file_format(feed, source_file)
    cut = len(path.name) - (len(end) + 1 if end else len(path.suffix))
    stem = _cut_bytes(path.name[:cut], _LONGEST_STEM_BYTES)
    suffix = _cut_bytes(path.name[cut:], _LONGEST_SUFFIX_BYTES)
    return str(path.with_name(f"{stem}.{sha256[:digits]}{suffix}"))


def _cut_bytes(text: str, most: int) -> str:
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def file_format(feed: Feed, source_file: str) -> str | None:
    """Return the feed's format that matches the file ending, ignoring case, or None."""
    return next((end for end in feed.formats if source_file.lower().endswith(f".{end}")), None)


def evaluate_name(feed: Feed, source_file: str) -> None:
    """Reject a file by its name: it is not UTF-8 or has none of the feed's endings."""
    expected = f"one of {', '.join(f'.{end}' for end in feed.formats)}"
    if not _is_utf8(source_file):
        raise FileRejected(
            "a name that is not UTF-8",
            found="other bytes",
            expected="a UTF-8 name",
            next_step="Rename the file and put it back.",
        )
    if file_format(feed, source_file) is None:
        ending = PurePosixPath(source_file).suffix
        found = quoted(ending) if ending else "no ending"
        raise FileRejected(
            "another kind of file",
            found=found,
            expected=expected,
            next_step="Deliver it in one of these formats.",
        )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _is_utf8(text: str) -> bool:
    # Python represents such bytes as lone surrogates.
    return not any("\ud800" <= character <= "\udfff" for character in text)
