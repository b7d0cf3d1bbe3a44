"""The output folder of a generation: files appear atomically and are only overwritten by equal
ones.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lakehouse.sample_data.bnpl.arguments import TRUTH, Arguments

_PATTERNS = ("bnpl_*.csv", "bnpl_*.csv.gz", TRUTH)


class FolderTaken(ValueError):
    """The folder contains other files than those to be written."""


def check_folder(out: Path, arguments: Arguments) -> None:
    """Reject a folder with files of other arguments, since it can have only one `truth.json`.

    :raises FolderTaken: states the folder and a file in it.
    """
    if out.exists() and not out.is_dir():
        raise FolderTaken(f"{out} is a file; expected a folder, or a name that is free.")
    other = {file.name for pattern in _PATTERNS for file in out.glob(pattern)}
    if _arguments_of(out / TRUTH) == arguments.as_json():
        other -= {*arguments.file_names, TRUTH}
    if other:
        more = f" and {len(other) - 1} more" if len(other) > 1 else ""
        raise FolderTaken(
            f"{out} holds {min(other)}{more},"
            " generated with other arguments; expected none, or what the same arguments made."
        )


@contextmanager
def hidden_until_complete(out: Path, names: Sequence[str]) -> Iterator[dict[str, Path]]:
    """Provide hidden names for files; rename all at the end, or remove them after an error."""
    out.mkdir(parents=True, exist_ok=True)
    for pattern in _PATTERNS:
        # Left by a killed run.
        for file in out.glob(f".{pattern}"):
            file.unlink()
    hidden = {name: out / f".{name}" for name in names}
    try:
        yield hidden
        for name, path in hidden.items():
            path.replace(out / name)
    finally:
        for path in hidden.values():
            path.unlink(missing_ok=True)


def _arguments_of(truth: Path) -> object:
    if not truth.is_file():
        return None
    try:
        content = json.loads(truth.read_text(encoding="utf-8"))
    except ValueError:
        return None
    return content.get("arguments") if isinstance(content, dict) else None
