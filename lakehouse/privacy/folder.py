"""The private folder of erasure in the home, and the key of the hashes of erased people."""

import re
import secrets
from pathlib import Path

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_text
from lakehouse.storage.file_lock import brief_lock

_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KEY_BYTES = 32


def privacy_folder(settings: Settings) -> Path:
    """Return the folder; it is created if necessary."""
    settings.make_home()
    folder = settings.home / "privacy"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def requests_folder(settings: Settings) -> Path:
    """Return the folder of the requests; it is created if necessary."""
    folder = privacy_folder(settings) / "requests"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def erase_lock(settings: Settings) -> Path:
    """Return the lock file that lets one process at a time erase people; no folder is created."""
    return settings.home / "privacy" / ".erase.lock"


def check_request_id(request_id: str) -> None:
    """Check that an id can be part of a file name, and is no option of a command.

    :raises UsageError: the id can be a personal value, and is not in the error.
    """
    if not _REQUEST_ID.fullmatch(request_id):
        raise UsageError(
            "The id of the request is not a name; expected a letter or digit, and up to 63"
            " letters, digits, dots, hyphens and underscores, such as R-17."
        )


def hmac_key(settings: Settings, *, is_needed: bool = False) -> bytes:
    """Return the key of the hashes of erased people; it is created once.

    With the key, a known value can be compared with erased people. No value can be computed
    from a hash.

    :param is_needed: whether a hash exists, so that a new key would be useless.
    :raises LakehouseError: if the file is invalid, or needed and missing.
    """
    file = settings.home / "privacy" / "hmac.key"
    if not file.is_file() and not is_needed:
        with brief_lock(privacy_folder(settings) / ".hmac.lock"):
            if not file.is_file():
                replace_text(file, secrets.token_hex(_KEY_BYTES))
    try:
        key = bytes.fromhex(file.read_text(encoding="utf-8"))
    except (ValueError, FileNotFoundError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise LakehouseError(
            f"{file} is missing or no key; expected {_KEY_BYTES} bytes in hex, as the first"
            " request wrote it.",
            next_step="Restore a copy of it: without it, rows of erased people would return.",
        )
    return key
