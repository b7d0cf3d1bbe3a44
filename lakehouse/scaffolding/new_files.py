"""New files: all of them or none, and none that exists is overwritten."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.storage.atomic_files import create_bytes
from lakehouse.tables.escaping import shown


def write_files(texts: Mapping[Path, str]) -> list[Path]:
    """Write files that do not exist, and return them.

    A file with the same text stays, so that repeating a call completes an interrupted one.

    :raises UsageError: a file exists with another text; then nothing is written.
    :raises LakehouseError: a file cannot be written.
    """
    check_new([path for path, text in texts.items() if differs(path, text)])
    missing = [path for path in texts if not path.exists()]
    for path in missing:
        _write(path, texts[path])
    return missing


def differs(path: Path, text: str) -> bool:
    """Whether a path exists with other content."""
    return path.exists() and not (path.is_file() and path.read_bytes() == text.encode())


def check_new(existing: Sequence[Path]) -> None:
    """Check that no file exists with other content.

    :raises UsageError: names the files.
    """
    if existing:
        names = ", ".join(shown(str(path)) for path in existing)
        raise UsageError(
            f"{names} {'is' if len(existing) == 1 else 'are'} already there with other content;"
            " nothing was written.",
            next_step="Give another name, or move what is there away.",
        )


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = create_bytes(path, text.encode(), mode=0o644)
    except OSError as error:
        raise LakehouseError(
            f"{shown(str(path))} cannot be written: {error.strerror or error}."
        ) from error
    if not is_new:
        raise LakehouseError(
            f"{shown(str(path))} cannot be written, or another process wrote it.",
            next_step="Check it, and run the command again.",
        )
