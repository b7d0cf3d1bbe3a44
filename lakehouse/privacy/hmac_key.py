"""The key of the hash that a person is remembered by once their values are gone.

It is of this purpose alone. Who has it can tell whether a value that they know is that of an
erased person; nobody can tell a value from the hash.
"""

import secrets
from pathlib import Path

from lakehouse.errors import LakehouseError
from lakehouse.privacy.folder import privacy_folder
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_text
from lakehouse.storage.file_lock import brief_lock

_KEY_BYTES = 32


def hmac_key(settings: Settings, *, is_needed: bool = False) -> bytes:
    """Return the key of the home, made once.

    :param is_needed: whether something was hashed with it, so that another one is of no use.
    :raises LakehouseError: when the file holds none, or is needed and not there.
    """
    file = settings.home / "privacy" / "hmac.key"
    if not file.is_file() and not is_needed:
        with brief_lock(privacy_folder(settings) / ".hmac.lock"):
            if not file.is_file():
                replace_text(file, secrets.token_hex(_KEY_BYTES))
    return _read(file)


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
