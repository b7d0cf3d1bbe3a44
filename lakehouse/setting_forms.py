"""Formats of setting values, and the error for invalid ones."""

import re
from collections.abc import Mapping
from pathlib import Path

from lakehouse.errors import SettingsError

MEMORY = (r"[1-9]\d*[kmgtKMGT]", "a number and its unit, such as 512m or 4g")
VERSION = (
    r"\d+\.\d+\.\d+(-[\w.-]+)?",
    "a version, such as 1.12.0, or 1.7.1-amzn-2 of a distribution",
)
COUNT = (r"[1-9]\d*", "a number from 1 on")
_FIRST_PORT = 1024
_LAST_PORT = 65535
_ARCHIVE = (
    # Spark separates archives by commas, and their aliases by #.
    r"(s3://[^/#?%,\s]+/|(?!\S*://))[^#?%,\s]+\.(tar\.gz|tgz)",
    "a file such as executors.tar.gz, or s3://bucket/executors.tar.gz, without spaces and #?%,",
)
_CONNECT = re.compile(
    # The client requires `/` before the first `;`, and a `=` in each parameter.
    r"sc://(?:[^\s/?#;:@=\[\]]+|\[[\da-fA-F:.]+\])(?::(\d{1,5}))?"
    r"(?:/(?:;[^\s?#;=]+=[^\s?#;=]*)*)?"
)
HOST = (r"[\w.:-]+", "a name or an address of this machine")


def value_of_form(
    env: Mapping[str, str], name: str, form: tuple[str, str], default: str
) -> str:
    """Return a setting's value, or the default if it is unset.

    :param form: a regular expression, and its description.
    :raises SettingsError: if the value does not match.
    """
    value, (pattern, expected) = env.get(name), form
    if value and not re.fullmatch(pattern, value):
        raise _otherwise(name, value, expected, default)
    return value or default


def count_value(env: Mapping[str, str], name: str) -> int | None:
    """Return a positive integer setting; None if it is unset.

    :raises SettingsError: if the value is invalid.
    """
    value = value_of_form(env, name, COUNT, "")
    return int(value) if value else None


def port_value(env: Mapping[str, str], name: str, ports: int) -> int | None:
    """Return the first port of a range; None if it is unset.

    :raises SettingsError: if a port of the range is reserved or does not exist.
    """
    last = _LAST_PORT - ports + 1
    form = (r"\d{1,5}", f"a port from {_FIRST_PORT} to {last}, such as 40000")
    value = value_of_form(env, name, form, "")
    if value and not _FIRST_PORT <= int(value) <= last:
        raise _otherwise(name, value, form[1], "")
    return int(value) if value else None


def archive_value(env: Mapping[str, str], name: str) -> str | None:
    """Return an archive setting: an absolute path, or `s3://bucket/key`; None if it is unset.

    :raises SettingsError: if Spark cannot unpack it.
    """
    value = env.get(name)
    if not value:
        return None
    place = archive_place(value)
    if not is_archive(place):
        raise _otherwise(name, place, _ARCHIVE[1], "")
    return place


def is_archive(place: str) -> bool:
    """Return whether Spark accepts a path as an archive."""
    return re.fullmatch(_ARCHIVE[0], place) is not None


def is_connect_address(address: str) -> bool:
    """Return whether a Spark Connect client accepts an address."""
    parts = _CONNECT.fullmatch(address)
    return parts is not None and 0 < int(parts[1] or 1) <= _LAST_PORT


def is_in_bucket(place: str) -> bool:
    """Return whether an archive is in S3."""
    return place.startswith("s3://")


def archive_place(value: str) -> str:
    """Return the location of an archive; a local path becomes absolute."""
    return value if "://" in value else str(Path(value).expanduser().absolute())


def _otherwise(name: str, value: str, expected: str, default: str) -> SettingsError:
    unset = f" for {default}" if default else ""
    return SettingsError(
        f"{name} is {value!r}; expected {expected}.",
        next_step=f"Correct it, or unset it{unset}.",
    )
