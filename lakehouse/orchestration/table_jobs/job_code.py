"""The code of a job: the lakehouse and the project, as they are in this process, as one archive
in the bucket.

A job unpacks it and imports from there, so that each run computes by the code of the process that
started it, and a new version of the project needs no deployment of its own.
"""

import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from lakehouse.runtime.package_zip import content_digest, zip_bytes
from lakehouse.settings import Settings

if TYPE_CHECKING:
    from lakehouse.storage.s3 import S3ObjectStore

RUNS = "jobs/runs/"
"""Where a job is asked and answers, in a folder of each run."""
SCRIPT = "jobs/script.py"
"""Key of what a job runs."""
_CODE = "jobs/code/"
_KEPT_FOR = timedelta(days=30)
_RENEWED_AFTER = timedelta(days=15)
_CODE_SUFFIXES = {".py", ".sql"}
_OWN_DATA_SUFFIXES = {".css", ".csv", ".html", ".md", ".properties", ".toml", ".typed", ".yaml"}
"""Of what the lakehouse itself has beside its code."""
_NO_CODE = ("__pycache__", "site-packages", ".")
_OWN_PACKAGE = Path(__file__).resolve().parents[2]


def publish_code(settings: Settings, store: "S3ObjectStore") -> str:
    """Put this process's code and the job's script into the bucket, unless they are there; return
    the URL of the code.
    """
    files = dict(sorted(_files(settings)))
    key = f"{_CODE}{content_digest(files)}.zip"
    there = store.stat(key)
    # Another process removes what is old: what it names is put there anew long before.
    if there is None or there.modified_at < datetime.now(UTC) - _RENEWED_AFTER:
        _remove_old(store)
        store.client.put_object(Bucket=store.bucket, Key=key, Body=zip_bytes(files))
    script = Path(__file__).with_name("job_script.py").read_bytes()
    if not store.exists(SCRIPT) or store.open(SCRIPT).read() != script:
        store.client.put_object(Bucket=store.bucket, Key=SCRIPT, Body=script)
    return store.uri(key)


def _remove_old(store: "S3ObjectStore") -> None:
    oldest = datetime.now(UTC) - _KEPT_FOR
    for stored in store.objects(_CODE):
        if stored.modified_at < oldest:
            store.remove(stored)


def _files(settings: Settings) -> Iterator[tuple[str, bytes]]:
    declared = _declared_data(settings.project_root)
    for path in _imported_paths(settings):
        paths = sorted(path.rglob("*")) if path.is_dir() else [path]
        data = set(_data_files(path, paths, declared))
        for file in paths:
            name = file.relative_to(path.parent)
            is_code = file.suffix in _CODE_SUFFIXES or file in data
            is_left_out = any(part.startswith(_NO_CODE) for part in name.parts)
            if is_code and not is_left_out and file.is_file():
                yield name.as_posix(), file.read_bytes()


def _declared_data(root: Path | None) -> dict[str, list[str]]:
    """Return what a project declares as data of its packages, as setuptools reads it."""
    file = root / "pyproject.toml" if root else None
    if file is None or not file.is_file():
        return {}
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    declared: dict[str, list[str]] = (
        content.get("tool", {}).get("setuptools", {}).get("package-data", {})
    )
    return declared


def _data_files(
    package: Path, paths: Sequence[Path], declared: Mapping[str, Sequence[str]]
) -> Iterator[Path]:
    """Return the files of a package that are data of it: of a project those that it declares,
    so that a home, a key or delivered files that lie there are none.

    :param paths: all that lies in the package.
    """
    if not package.is_dir():
        return
    if package == _OWN_PACKAGE:
        yield from (path for path in paths if path.suffix in _OWN_DATA_SUFFIXES)
        return
    folders = [package, *(path for path in paths if path.is_dir())]
    for name, patterns in declared.items():
        for folder in folders:
            dotted = ".".join(folder.relative_to(package.parent).parts)
            if name in ("", "*", dotted):
                for pattern in patterns:
                    yield from folder.glob(pattern)


def _imported_paths(settings: Settings) -> list[Path]:
    """Return the packages and modules that a job needs: the lakehouse, that of the definitions,
    and what else of the project's folder was imported.
    """
    needed = {__name__.partition(".")[0], settings.definitions.partition(".")[0]}
    root = settings.project_root
    paths: dict[Path, None] = {}
    for name, module in sorted(sys.modules.items()):
        if "." in name:
            continue
        for path in _paths_of(module):
            is_own = root is not None and path.parent == root.resolve()
            if name in needed or is_own:
                paths[path] = None
    return list(paths)


def _paths_of(module: ModuleType) -> list[Path]:
    """Return the folders of a package, which has no file where it lacks an `__init__.py`; or the
    file of a module.
    """
    folders = getattr(module, "__path__", None)
    if folders is not None:
        return [Path(folder).resolve() for folder in folders]
    file = getattr(module, "__file__", None)
    return [Path(file).resolve()] if file else []
