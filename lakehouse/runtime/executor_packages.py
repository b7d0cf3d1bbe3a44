"""The packages that Python on executors needs, as they are installed here: which they are, and
which of their files count when code runs.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lakehouse.errors import SetupError, UsageError

ALWAYS = ("boto3", "cramjam", "fastavro", "numpy", "pyarrow")
"""What reads delivered files there, see `lakehouse.ingestion.executor_task`."""
_NOT_RUN = frozenset({"__pycache__", "tests"})
_SOURCES = frozenset(
    {".a", ".c", ".cc", ".cpp", ".h", ".hh", ".hpp", ".pxd", ".pxi", ".pyc", ".pyx"}
)
"""Headers, static libraries, and what extensions were compiled from."""
_OF_THIS_PLACE = frozenset({"INSTALLER", "RECORD", "REQUESTED", "direct_url.json"})
"""What an installer noted beside a package: how it came here, and where it lies."""


def installed_packages(asked: Iterable[str]) -> dict[str, Distribution]:
    """Return packages, and what they require, by name.

    :raises UsageError: when one of those that are asked for is not installed.
    :raises SetupError: when one that they require is not.
    """
    packages: dict[str, Distribution] = {}
    for name in asked:
        try:
            distribution(name)
        except (PackageNotFoundError, ValueError) as error:
            raise UsageError(
                f"The package {name!r} is not installed here; expected one that is, since it is"
                " copied from here.",
                next_step="Correct the name, or install it.",
            ) from error
        _add(Requirement(name), packages, set())
    return dict(sorted(packages.items()))


def _add(
    requirement: Requirement,
    packages: dict[str, Distribution],
    seen: set[tuple[str, frozenset[str]]],
) -> None:
    name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
    if (name, extras) in seen:
        return
    seen.add((name, extras))
    try:
        found = distribution(name)
    except PackageNotFoundError as error:
        raise SetupError(
            f"The package {name} is not installed here, and another one requires it.",
            next_step=f"Run `pip install {name}`.",
        ) from error
    packages[name] = found
    for text in found.requires or ():
        required = Requirement(text)
        if _applies(required, extras):
            _add(required, packages, seen)


def _applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras | {""})


def versions(packages: Mapping[str, Distribution]) -> dict[str, str]:
    """Return the version of each package."""
    return {name: package.version for name, package in packages.items()}


def runtime_files(packages: Mapping[str, Distribution]) -> dict[str, Path]:
    """Return the files by which packages are imported, by their paths below `site-packages`.

    :raises SetupError: when files of one are not known, or not there.
    """
    files: dict[str, Path] = {}
    for name, package in packages.items():
        for path in _paths(name, package):
            file = Path(str(package.locate_file(str(path))))
            if not file.is_file():
                raise SetupError(
                    f"The package {name} has no {file}, which it lists as its own.",
                    next_step=_again(name),
                )
            files[str(path)] = file
    return dict(sorted(files.items()))


def _paths(name: str, package: Distribution) -> Iterator[PurePosixPath]:
    if package.files is None or _is_linked(package):
        raise SetupError(
            f"The package {name} is installed without a list of its files, or its code lies"
            " elsewhere (`pip install -e`); expected a copy.",
            next_step=_again(name),
        )
    for path in package.files:
        if _is_run(path):
            yield path


def _is_linked(package: Distribution) -> bool:
    origin = json.loads(package.read_text("direct_url.json") or "{}")
    return bool(origin.get("dir_info", {}).get("editable"))


def _is_run(path: PurePosixPath) -> bool:
    # Programs and manuals of a package lie outside of `site-packages`.
    is_outside = path.is_absolute() or ".." in path.parts
    is_note = path.parent.suffix == ".dist-info" and path.name in _OF_THIS_PLACE
    is_aside = path.suffix in _SOURCES or not _NOT_RUN.isdisjoint(path.parts)
    return not (is_outside or is_note or is_aside)


def _again(name: str) -> str:
    return f"Run `pip install --force-reinstall {name}`."
