"""Spark's folders in a home: log, temporary files, event logs."""

import re
import shutil
from pathlib import Path
from typing import BinaryIO

from lakehouse.iceberg.frames.spark_errors import known_error
from lakehouse.settings import Settings
from lakehouse.spark.processes import Process
from lakehouse.storage.atomic_files import keep_private

_LOG_LIMIT_BYTES = 10_000_000


def log_file(settings: Settings) -> Path:
    """Where Spark's own words go."""
    return settings.home / "logs" / "spark.log"


def open_log(settings: Settings) -> BinaryIO:
    """Open Spark's log at its end."""
    log_file(settings).parent.mkdir(parents=True, exist_ok=True)
    return log_file(settings).open("ab")


def log_size(settings: Settings) -> int:
    """Return where the log ends before a start, once one that is too long was put aside."""
    log = log_file(settings)
    if log.exists() and log.stat().st_size > _LOG_LIMIT_BYTES:
        log.replace(log.with_suffix(".log.1"))
    return log.stat().st_size if log.exists() else 0


def last_words(settings: Settings, started_at: int) -> str:
    """Return the end of what was said from a point of the log on."""
    with log_file(settings).open("rb") as file:
        file.seek(started_at)
        lines = [line.strip() for line in file.read().decode(errors="replace").split("\n")]
    text = " ".join(line for line in lines if line and not line.startswith(("at ", "... ")))
    return known_error(text) or text[-500:] or "it said nothing."


_NAME = re.compile(r"(?P<host>.+)-(?P<pid>\d+)-(?P<started>\d+)(-server)?")


def temporary_folder(settings: Settings, *, is_server: bool = False) -> Path:
    """Return the folder of this process's Spark, or of its server; it may not exist."""
    process = Process.current()
    name = f"{process.host}-{process.pid}-{round(process.started_at)}"
    return settings.home / "tmp" / (f"{name}-server" if is_server else name)


def prepare_temporary_folder(settings: Settings, *, is_server: bool = False) -> None:
    """Make that folder empty, and remove those of ended processes of this host."""
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
