"""A folder becomes a project; no existing file is overwritten."""

import importlib.util
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakehouse.errors import UsageError
from lakehouse.settings.project_file import find_project_file
from lakehouse.storage.atomic_files import create_bytes
from lakehouse.tables.quoting import shown


def write_files(texts: Mapping[Path, str]) -> list[Path]:
    """Write files that do not exist, and return them.

    A file with the same text stays, so that repeating a call completes an interrupted one.

    :raises UsageError: a file exists with another text; then nothing is written.
    """
    check_new([path for path, text in texts.items() if differs(path, text)])
    missing = [path for path in texts if not path.exists()]
    for path in missing:
        path.parent.mkdir(parents=True, exist_ok=True)
        create_bytes(path, texts[path].encode(), mode=0o644)
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


_PACKAGE = re.compile(r"[a-z][a-z0-9_]*")
_TAKEN = frozenset({"conftest", "lakehouse", "test", "tests"})
_SHARED_FILES = ("README.md", ".gitignore", "Makefile")
"""Files that a folder can have before it becomes a project."""
_TEMPLATE = Path(__file__).with_name("project.yaml")


@dataclass(frozen=True)
class BegunProject:
    """The files of a project by their paths, those that were written, and those that exist with
    other content.
    """

    texts: Mapping[Path, str]
    written: Sequence[Path]
    kept: Sequence[Path]


def begin_project(root: Path, package: str | None, version: str) -> BegunProject:
    """Make a folder a project, or add its missing files.

    :param package: the name of its package; by default that of the folder.
    :param version: the version of the lakehouse that the project depends on.
    :raises UsageError: the folder or the name is not usable, or a file exists with other
        content; then nothing is written.
    """
    import yaml

    known = _known_package(root)
    name = package or known or _name_of(root)
    if known and name != known:
        raise UsageError(
            f"{shown(str(root))} is the project {known} already; expected it, or another folder.",
            next_step="Omit --name, or give another FOLDER.",
        )
    if not known:
        _check_name(name)
    template = _TEMPLATE.read_text(encoding="utf-8")
    files = yaml.safe_load(template.replace("<package>", name).replace("<version>", version))
    # The file that marks the folder as a project is last.
    texts = {root / path: text for path, text in files.items()}
    kept = [path for path, text in texts.items() if differs(path, text)]
    if not known:
        check_new([path for path in kept if path.name not in _SHARED_FILES])
    missing = {path: text for path, text in texts.items() if path not in kept}
    return BegunProject(texts, write_files(missing), kept)


def _known_package(root: Path) -> str | None:
    """Return the package of an existing project; None if the folder is not in one."""
    project = find_project_file(root.resolve())
    if project is None:
        return None
    if project.root != root.resolve():
        raise UsageError(
            f"{shown(str(root))} lies in the project of {shown(str(project.root))}; expected a"
            " folder outside of it.",
            next_step="Give another FOLDER.",
        )
    return project.assets.partition(".")[0]


def _name_of(root: Path) -> str:
    words = re.sub(r"[^a-z0-9]+", "_", root.resolve().name.lower())
    return words.strip("_").lstrip("_0123456789")


def _check_name(name: str) -> None:
    is_valid = _PACKAGE.fullmatch(name) and not keyword.iskeyword(name)
    if not is_valid or name in _TAKEN or importlib.util.find_spec(name):
        raise UsageError(
            f"The name of the package is {name!r}; expected lower case letters, digits and"
            " underscores, and no name of another package in this Python.",
            next_step="Give --name, such as shop.",
        )
