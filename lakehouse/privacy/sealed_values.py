"""The values that a request names, encrypted, in one file; until its proof they lie nowhere else.

Each request has a key of its own beside the values. Both are destroyed with the proof: overwritten,
and taken away. On a disk that writes elsewhere what is overwritten, and in copies of the home, the
values stay unreadable as long as no copy has the key as well; back up one of the two at most.
"""

import json
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.privacy.folder import check_request_id, requests_folder
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_bytes
from lakehouse.tables.person import Person


@dataclass(frozen=True)
class SealedValues:
    """What a request is about: what its caller named, and the people that this led to."""

    named: tuple[tuple[str, str], ...] = field(repr=False)
    """Columns and values, as they were given."""
    people: tuple[Person, ...] = field(default=(), repr=False)


def seal(settings: Settings, request_id: str, values: SealedValues) -> None:
    """Encrypt the values of a request into its file, in place of those that are there."""
    from cryptography.fernet import Fernet

    check_request_id(request_id)
    sealed, key_file = _files(settings, request_id)
    if not key_file.is_file():
        replace_bytes(key_file, Fernet.generate_key())
    token = Fernet(key_file.read_bytes()).encrypt(_to_json(values))
    replace_bytes(sealed, token)
    _sync_folder(sealed.parent)


def unseal(settings: Settings, request_id: str) -> SealedValues:
    """Return the values of a request.

    :raises LakehouseError: when they are destroyed, or cannot be decrypted.
    """
    from cryptography.fernet import Fernet, InvalidToken

    check_request_id(request_id)
    sealed, key_file = _files(settings, request_id)
    if not is_sealed(settings, request_id):
        raise LakehouseError(
            f"The values of request {request_id} are not there; they are destroyed once it is"
            " verified.",
            next_step="Name the person again by SUBJECT=VALUE.",
        )
    try:
        content = Fernet(key_file.read_bytes()).decrypt(sealed.read_bytes())
    except (InvalidToken, ValueError) as error:
        raise LakehouseError(
            f"{sealed} cannot be decrypted by {key_file.name}; expected what was sealed with it.",
            next_step="Put copies of both back, or open a request of another id.",
        ) from error
    return _from_json(content)


def is_sealed(settings: Settings, request_id: str) -> bool:
    """Whether the values of a request are there, and can be read."""
    return all(file.is_file() for file in _files(settings, request_id))


def destroy(settings: Settings, request_id: str) -> bool:
    """Overwrite and remove the key and the values of a request, and what a killed process left
    of either; return whether any was there.
    """
    check_request_id(request_id)
    destroyed = False
    # The key first: whatever comes between, nobody reads the values any more.
    for file in reversed(_files(settings, request_id)):
        for part in (file, *_left_parts(file)):
            if part.is_file():
                _overwrite(part)
                part.unlink(missing_ok=True)
                destroyed = True
    _sync_folder(requests_folder(settings))
    return destroyed


def _files(settings: Settings, request_id: str) -> tuple[Path, Path]:
    folder = requests_folder(settings)
    return folder / f"{request_id}.sealed", folder / f"{request_id}.key"


def _left_parts(file: Path) -> Iterator[Path]:
    """Yield what a process that was killed while it wrote a file left beside it."""
    for part in file.parent.iterdir():
        if part.name.startswith(f".{file.name}-"):
            yield part


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


def _to_json(values: SealedValues) -> bytes:
    people = []
    for person in values.people:
        personal = {name: sorted(texts) for name, texts in sorted(person.personal.items())}
        people.append(
            {"subject": person.subject, "ids": sorted(person.ids), "personal": personal}
        )
    return json.dumps({"named": values.named, "people": people}).encode()


def _from_json(content: bytes) -> SealedValues:
    values = json.loads(content)
    named = tuple((column, value) for column, value in values["named"])
    return SealedValues(named, tuple(map(_person, values["people"])))


def _person(fields: dict[str, Any]) -> Person:
    personal: dict[str, Sequence[str]] = fields["personal"]
    return Person(
        fields["subject"],
        frozenset(fields["ids"]),
        {name: frozenset(texts) for name, texts in personal.items()},
    )
