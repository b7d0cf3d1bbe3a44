"""This package as a zip, from which Python on executors imports it."""

import io
from hashlib import sha256
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import lakehouse
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import create_bytes

_HASH_DIGITS = 16


def package_zip(settings: Settings) -> Path:
    """Return the zip of the modules as they are now, in the cache; made once for each form of
    them.
    """
    root = Path(lakehouse.__file__).parent
    content = io.BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as archive:
        for module in sorted(root.rglob("*.py")):
            # With a time of its own, so that the same modules give the same bytes.
            entry = ZipInfo(module.relative_to(root.parent).as_posix())
            entry.compress_type = ZIP_DEFLATED
            archive.writestr(entry, module.read_bytes())
    packed = content.getvalue()
    name = f"lakehouse-{sha256(packed).hexdigest()[:_HASH_DIGITS]}.zip"
    file = settings.cache_dir / "packages" / name
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        create_bytes(file, packed)
    return file
