"""The folder of the home that erasure keeps its own files in; nobody but its user may enter."""

import re
from pathlib import Path

from lakehouse.errors import UsageError
from lakehouse.settings import Settings

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def privacy_folder(settings: Settings) -> Path:
    """Return the folder, made where it is not there."""
    settings.make_home()
    folder = settings.home / "privacy"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def requests_folder(settings: Settings) -> Path:
    """Return the folder of the requests, made where it is not there."""
    folder = privacy_folder(settings) / "requests"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def erase_lock(settings: Settings) -> Path:
    """Return the file by whose lock one process at a time erases people from a home; the folder
    is not made.
    """
    return settings.home / "privacy" / ".erase.lock"


def check_request_id(request_id: str) -> None:
    """Check that an id can be the name of a request and of its file: a file whose name begins with
    a dot is hidden, and an option begins with a hyphen.

    :raises UsageError: when it cannot; the id may be a personal value, and is not in the error.
    """
    if not _NAME.fullmatch(request_id):
        raise UsageError(
            "The id of the request is not a name; expected a letter or digit, and up to 63"
            " letters, digits, dots, hyphens and underscores behind it, such as R-17."
        )
