"""Stores the values of a request encrypted until its proof.

Each request has its own key. Both files are overwritten and removed with the proof. On a disk that
does not overwrite in place, and in copies of the home, the values stay unreadable as long as no
copy has the key too: back up at most one of the two.
"""

import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.errors import LakehouseError
from lakehouse.privacy.folder import requests_folder
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_bytes
from lakehouse.tables.person import Person

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(frozen=True)
class SealedValues:
    """The named values of a request, and the people that were found."""

    named: tuple[tuple[str, str], ...] = field(repr=False)
    """Columns and values, as they were given."""
    people: tuple[Person, ...] = field(default=(), repr=False)


def seal(settings: Settings, request_id: str, values: SealedValues) -> None:
    """Encrypt the values of a request into its file, and replace former ones."""
    from cryptography.fernet import Fernet

    sealed, key_file = _files(settings, request_id)
    if not key_file.is_file():
        replace_bytes(key_file, Fernet.generate_key())
    token = Fernet(key_file.read_bytes()).encrypt(_adapter().dump_json(values))
    replace_bytes(sealed, token)
    _sync_folder(sealed.parent)


def unseal(settings: Settings, request_id: str) -> SealedValues:
    """Return the values of a request.

    :raises LakehouseError: if they are destroyed, or cannot be decrypted.
    """
    from cryptography.fernet import Fernet, InvalidToken

    sealed, key_file = _files(settings, request_id)
    if not is_sealed(settings, request_id):
        raise LakehouseError(
            f"The values of request {request_id} do not exist; they are destroyed once it is"
            " verified.",
            next_step="Name the person again by SUBJECT=VALUE.",
        )
    try:
        content = Fernet(key_file.read_bytes()).decrypt(sealed.read_bytes())
    except (InvalidToken, ValueError) as error:
        raise LakehouseError(
            f"{sealed} cannot be decrypted by {key_file.name}; expected what was sealed with it.",
            next_step="Restore copies of both, or open a request with another id.",
        ) from error
    return _adapter().validate_json(content)


def is_sealed(settings: Settings, request_id: str) -> bool:
    """Return whether the values of a request exist and can be read."""
    return all(file.is_file() for file in _files(settings, request_id))


def destroy(settings: Settings, request_id: str) -> bool:
    """Overwrite and remove the key and the values of a request, and temporary files of killed
    processes; return whether any existed.
    """
    is_destroyed = False
    # The key first: if this is interrupted, the values are unreadable.
    for file in reversed(_files(settings, request_id)):
        for part in (file, *file.parent.glob(f".{file.name}-*")):
            if part.is_file():
                _overwrite(part)
                part.unlink(missing_ok=True)
                is_destroyed = True
    _sync_folder(requests_folder(settings))
    return is_destroyed


def _files(settings: Settings, request_id: str) -> tuple[Path, Path]:
    folder = requests_folder(settings)
    return folder / f"{request_id}.sealed", folder / f"{request_id}.key"


def _overwrite(file: Path) -> None:
    with file.open("r+b") as content:
        size = os.fstat(content.fileno()).st_size
        content.write(secrets.token_bytes(size))
        content.flush()
        os.fsync(content.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _adapter() -> "TypeAdapter[SealedValues]":
    from pydantic import TypeAdapter

    return TypeAdapter(SealedValues)
