"""Writing new files: all of them or none, and none over one that is there."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.storage.atomic_files import create_bytes
from lakehouse.tables.escaping import shown

_MODE = 0o644


def write_files(texts: Mapping[Path, str]) -> list[Path]:
    """Write files that are not there, and return them.

    A file that has the same text already stays, so that a call which was cut short is carried
    on by the same one.

    :raises UsageError: a file is there and has another text; then nothing is written.
    :raises LakehouseError: a file cannot be written.
    """
    differing = [path for path, text in texts.items() if path.exists() and not _has(path, text)]
    if differing:
        raise UsageError(
            f"{_named(differing)} already there with other content; nothing was written.",
            next_step="Give another name, or move what is there away.",
        )
    written = []
    for path, text in texts.items():
        if not path.exists():
            _write(path, text)
            written.append(path)
    return written


def _has(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def _named(paths: Sequence[Path]) -> str:
    names = ", ".join(shown(str(path)) for path in paths)
    return f"{names} {'is' if len(paths) == 1 else 'are'}"


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = create_bytes(path, text.encode(), mode=_MODE)
    except OSError as error:
        raise LakehouseError(
            f"{shown(str(path))} cannot be written: {error.strerror or error}."
        ) from error
    if not is_new:
        raise LakehouseError(
            f"{shown(str(path))} cannot be written, or came to be there meanwhile.",
            next_step="Look at it, and run the command again.",
        )
