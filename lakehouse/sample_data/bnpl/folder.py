"""The output folder of a generation, which is only overwritten by equal files."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

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
def staging_folder(out: Path) -> Iterator[Path]:
    """Provide a hidden folder, whose files are moved to `out` at the end; none after an error."""
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".generated-", dir=out) as staging:
        yield Path(staging)
        # `truth.json` is first: it identifies the arguments of an interrupted generation.
        for file in sorted(Path(staging).iterdir(), reverse=True):
            file.replace(out / file.name)


def _arguments_of(truth: Path) -> object:
    if not truth.is_file():
        return None
    try:
        content = json.loads(truth.read_text(encoding="utf-8"))
    except ValueError:
        return None
    return content.get("arguments") if isinstance(content, dict) else None
