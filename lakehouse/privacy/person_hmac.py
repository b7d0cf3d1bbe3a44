"""A person as they are remembered once their values are gone: by a keyed hash.

The key is of this purpose alone. Who has it can tell whether a value that they know is that of an
erased person; nobody can tell a value from the hash.
"""

import hashlib
import hmac
import secrets
from pathlib import Path

from lakehouse.errors import LakehouseError
from lakehouse.privacy.folder import privacy_folder
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_text
from lakehouse.storage.file_lock import BRIEF_SECONDS, busy_file, file_lock
from lakehouse.tables.person import normal_id

_KEY_BYTES = 32


def hmac_key(settings: Settings, *, is_needed: bool = False) -> bytes:
    """Return the key of the home, made once.

    :param is_needed: whether something was hashed with it, so that another one is of no use.
    :raises LakehouseError: when the file holds none, or is needed and not there.
    """
    file = settings.home / "privacy" / "hmac.key"
    if not file.is_file() and not is_needed:
        lock = privacy_folder(settings) / ".hmac.lock"
        with file_lock(lock, BRIEF_SECONDS, busy_file(lock)):
            if not file.is_file():
                replace_text(file, secrets.token_hex(_KEY_BYTES))
    return _read(file)


def person_hmac(key: bytes, subject: str, value: str) -> str:
    """Return the keyed hash of a person, in hex; all forms of an id have one."""
    text = f"{subject}\x00{normal_id(value)}"
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _read(file: Path) -> bytes:
    try:
        key = bytes.fromhex(file.read_text(encoding="utf-8"))
    except (ValueError, FileNotFoundError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise LakehouseError(
            f"{file} is no key, or not there; expected {_KEY_BYTES} bytes in hex, as the first"
            " request made it.",
            next_step=(
                "Put a copy of it back: without it nobody who is gone is known, and comes back"
                " with the next delivery."
            ),
        )
    return key
