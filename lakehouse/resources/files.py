"""Files that appear whole or not at all."""

import os
import tempfile
from pathlib import Path


def replace_text(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Write a file in one step, so that no other process sees half of it; an equal one is left alone."""
    if path.is_file() and path.read_text() == text and path.stat().st_mode & 0o777 == mode:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    part = Path(name)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        part.chmod(mode)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
