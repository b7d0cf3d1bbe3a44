"""Making a folder a project, so that nothing that is there is overwritten."""

import importlib.util
import keyword
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakehouse.errors import UsageError
from lakehouse.project_file import FILE, find_project_file
from lakehouse.scaffolding.project_files import EVERYBODYS, project_files
from lakehouse.scaffolding.write_files import write_files
from lakehouse.tables.escaping import shown

_PACKAGE = re.compile(r"[a-z][a-z0-9_]*")
_TAKEN = frozenset({"conftest", "lakehouse", "test", "tests"})


@dataclass(frozen=True)
class BegunProject:
    """What became of each file of a project, by its path."""

    package: str
    texts: Mapping[Path, str]
    written: Sequence[Path]
    kept: Sequence[Path]
    """Files that were there already with other content."""


def begin_project(root: Path, package: str | None, version: str) -> BegunProject:
    """Make a folder a project, and return what was done; what is missing of one is written too.

    :param package: the name of its package; that of the folder by itself.
    :raises UsageError: the folder or the name cannot be a project's, or a file of it is there
        with other content; then nothing is written.
    """
    if root.exists() and not root.is_dir():
        raise UsageError(
            f"{shown(str(root))} is a file; expected a folder, or a place for one.",
            next_step="Give another FOLDER.",
        )
    known = _known_package(root)
    name = package or known or _name_of(root)
    if known and name != known:
        raise UsageError(
            f"{shown(str(root))} is the project {known} already; expected it, or another folder.",
            next_step="Leave --name out, or give another FOLDER.",
        )
    _check_name(name, root)
    texts = {root / path: text for path, text in project_files(name, version).items()}
    kept = [path for path, text in texts.items() if _differs(path, text)]
    if not known:
        _check_may_be_kept(root, kept)
    missing = {path: text for path, text in texts.items() if path not in kept}
    return BegunProject(name, texts, write_files(missing), kept)


def _known_package(root: Path) -> str | None:
    """Return the package of the project that a folder is; None where it is none.

    :raises UsageError: it lies in a project, as where the command is given there once more.
    """
    project = find_project_file(root.resolve())
    if project is None:
        return None
    name = project.assets.partition(".")[0]
    if project.root != root.resolve():
        raise UsageError(
            f"{shown(str(root))} lies in the project {name} ({shown(str(project.root))}); expected"
            " a folder outside of it.",
            next_step=f"Work in {shown(str(project.root))}, or give another FOLDER.",
        )
    return name


def _name_of(root: Path) -> str:
    words = re.sub(r"[^a-z0-9]+", "_", root.resolve().name.lower())
    return words.strip("_").lstrip("_0123456789")


def _check_name(name: str, root: Path) -> None:
    if not _PACKAGE.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(
            f"The name of the package is {name!r}; expected lower case letters, digits and"
            " underscores, from a letter on, and no word of Python.",
            next_step="Say --name, such as shop.",
        )
    if name in _TAKEN or name in sys.stdlib_module_names or _is_elsewhere(name, root):
        raise UsageError(
            f"There is a package {name} in this Python already; expected another name, since one"
            " of both could not be imported.",
            next_step="Say --name, such as shop.",
        )


def _is_elsewhere(name: str, root: Path) -> bool:
    spec = importlib.util.find_spec(name)
    if spec is None:
        return False
    places = [spec.origin or "", *(spec.submodule_search_locations or ())]
    return not any(Path(place).is_relative_to(root.resolve()) for place in places if place)


def _differs(path: Path, text: str) -> bool:
    return path.exists() and not (path.is_file() and path.read_bytes() == text.encode())


def _check_may_be_kept(root: Path, kept: Sequence[Path]) -> None:
    if root / FILE in kept:
        raise UsageError(
            f"{shown(str(root / FILE))} is there already, and has no [tool.lakehouse]; expected a"
            " folder that is no other project's. Nothing was written.",
            next_step="Give another FOLDER, or add the table, as docs/your-data.md says.",
        )
    refused = [path for path in kept if path.name not in EVERYBODYS]
    if refused:
        names = ", ".join(shown(str(path)) for path in refused)
        raise UsageError(
            f"{names} {'is' if len(refused) == 1 else 'are'} there already with other content;"
            " nothing was written.",
            next_step="Give another FOLDER or --name, or move what is there away.",
        )
