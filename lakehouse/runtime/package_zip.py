"""Modules as a zip, from which Python imports them elsewhere: this package on executors, and a
project in a job.
"""

import io
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import lakehouse
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import create_bytes

_DIGITS = 16
_SAME_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = 0o644 << 16


def package_zip(settings: Settings) -> Path:
    """Return the zip of the modules as they are now, in the cache; made once for each form of
    them.
    """
    root = Path(lakehouse.__file__).parent
    modules = sorted(root.rglob("*.py"))
    files = {path.relative_to(root.parent).as_posix(): path.read_bytes() for path in modules}
    file = settings.cache_dir / "packages" / f"lakehouse-{content_digest(files)}.zip"
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        create_bytes(file, zip_bytes(files))
    return file


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
