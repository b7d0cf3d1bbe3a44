"""The code of a job: the lakehouse and the project, as they are in this process, as one archive
in the bucket.

A job unpacks it and imports from there, so that each run computes by the code of the process that
started it, and a new version of the project needs no deployment of its own.
"""

import hashlib
import io
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.settings import Settings

if TYPE_CHECKING:
    from lakehouse.storage.s3 import S3ObjectStore

RUNS = "jobs/runs/"
"""Where a job is asked and answers, in a folder of each run."""
SCRIPT = "jobs/script.py"
"""Key of what a job runs."""
_CODE = "jobs/code/"
_KEPT_FOR = timedelta(days=30)
_DIGITS = 16
_NO_CODE = ("__pycache__", "site-packages", ".")
_SAME_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = 0o644 << 16


def publish_code(settings: Settings, store: "S3ObjectStore") -> str:
    """Put this process's code and the job's script into the bucket, unless they are there; return
    the URL of the code.
    """
    files = dict(sorted(_files(settings)))
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    key = f"{_CODE}{digest.hexdigest()[:_DIGITS]}.zip"
    if not store.exists(key):
        _remove_old(store)
        store.client.put_object(Bucket=store.bucket, Key=key, Body=_archive(files))
    script = Path(__file__).with_name("job_script.py").read_bytes()
    if not store.exists(SCRIPT) or store.open(SCRIPT).read() != script:
        store.client.put_object(Bucket=store.bucket, Key=SCRIPT, Body=script)
    return f"s3://{store.bucket}/{key}"


def _archive(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in files.items():
            entry = zipfile.ZipInfo(name, _SAME_TIME)
            entry.external_attr = _MODE
            archive.writestr(entry, file, zipfile.ZIP_DEFLATED)
    return content.getvalue()


def _remove_old(store: "S3ObjectStore") -> None:
    oldest = datetime.now(UTC) - _KEPT_FOR
    for stored in store.objects(_CODE):
        if stored.modified_at < oldest:
            store.remove(stored)


def _files(settings: Settings) -> Iterator[tuple[str, bytes]]:
    for path in _imported_paths(settings):
        paths = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in paths:
            name = file.relative_to(path.parent)
            if file.is_file() and not any(part.startswith(_NO_CODE) for part in name.parts):
                yield name.as_posix(), file.read_bytes()


def _imported_paths(settings: Settings) -> list[Path]:
    """Return the packages and modules that a job needs: the lakehouse, that of the definitions,
    and what else of the project's folder was imported.
    """
    needed = {__name__.partition(".")[0], settings.definitions.partition(".")[0]}
    root = settings.project_root
    paths: dict[Path, None] = {}
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if "." in name or not file:
            continue
        path = Path(file).resolve()
        path = path.parent if path.name == "__init__.py" else path
        is_own = root is not None and path.parent == root.resolve()
        if name in needed or is_own:
            paths[path] = None
    return list(paths)
