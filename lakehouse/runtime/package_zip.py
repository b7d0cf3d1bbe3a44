"""Modules as a zip, from which Python imports them elsewhere: this package and a project on
executors, and in a job.
"""

import io
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import lakehouse
from lakehouse.runtime.temporary_folders import temporary_folder
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_bytes

_DIGITS = 16
_ZIP_NAME = re.compile(rf"[a-z]+-[0-9a-f]{{{_DIGITS}}}\.zip")
_SAME_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = 0o644 << 16


def package_zip(settings: Settings) -> Path:
    """Return the zip of the modules as they are now, in the cache, where it is made once for each
    form of them; among the temporary files of this process where the cache cannot be written.
    """
    root = Path(lakehouse.__file__).parent
    modules = sorted(root.rglob("*.py"))
    files = {path.relative_to(root.parent).as_posix(): path.read_bytes() for path in modules}
    name = zip_name(lakehouse.__name__, files)
    kept = settings.cache_dir / "packages" / name
    if kept.is_file():
        return kept
    content = zip_bytes(files)
    try:
        replace_bytes(kept, content)
    except OSError:
        kept = temporary_folder(settings) / name
        replace_bytes(kept, content)
    return kept


def zip_name(what: str, files: Mapping[str, bytes]) -> str:
    """Return the name of a zip of code, another one for other files."""
    return f"{what}-{content_digest(files)}.zip"


def is_code_zip(name: str) -> bool:
    """Whether a file has the name of a zip of code."""
    return _ZIP_NAME.fullmatch(name) is not None


def content_digest(files: Mapping[str, bytes]) -> str:
    """Return what tells files of some names and contents from others, in hex digits."""
    digest = sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:_DIGITS]


def zip_bytes(files: Mapping[str, bytes]) -> bytes:
    """Return a zip of files by their names; the same ones give the same bytes."""
    content = io.BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as archive:
        for name, file in files.items():
            entry = ZipInfo(name, _SAME_TIME)
            entry.external_attr = _MODE
            archive.writestr(entry, file, ZIP_DEFLATED)
    return content.getvalue()
