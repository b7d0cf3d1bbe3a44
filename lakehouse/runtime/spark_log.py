"""Spark's own log in a home: what its JVM says, whoever started it."""

from pathlib import Path
from typing import BinaryIO

from lakehouse.iceberg.metadata.error_explanations import known_error
from lakehouse.settings import Settings

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
