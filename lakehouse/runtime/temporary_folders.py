"""Spark's temporary folders: private, in the home, one for each process with a Spark."""

import re
import shutil
from pathlib import Path

from lakehouse.runtime.processes import Process
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import keep_private

_NAME = re.compile(r"(?P<host>.+)-(?P<pid>\d+)-(?P<started>\d+)(-server)?")


def temporary_folder(settings: Settings, *, is_server: bool = False) -> Path:
    """Return the folder of this process's Spark, or of its server; it may not exist."""
    process = Process.current()
    name = f"{process.host}-{process.pid}-{round(process.started_at)}"
    return settings.home / "tmp" / (f"{name}-server" if is_server else name)


def prepare_temporary_folder(settings: Settings, *, is_server: bool = False) -> None:
    """Make that folder empty, and remove those of processes of this host that are gone."""
    keep_private()
    settings.make_home()
    own = temporary_folder(settings, is_server=is_server)
    own.parent.mkdir(mode=0o700, exist_ok=True)
    for folder in own.parent.iterdir():
        process = process_of(folder)
        if folder == own or (process and not process.is_alive):
            shutil.rmtree(folder, ignore_errors=True)
    own.mkdir(mode=0o700)


def temporary_folders(settings: Settings) -> list[Path]:
    """Return the folders that there are, of whatever process."""
    parent = settings.home / "tmp"
    return sorted(parent.iterdir()) if parent.is_dir() else []


def process_of(folder: Path) -> Process | None:
    """Return the process of a temporary folder; None of one that is no process's."""
    match = _NAME.fullmatch(folder.name)
    if not match:
        return None
    return Process(match["host"], int(match["pid"]), float(match["started"]))
