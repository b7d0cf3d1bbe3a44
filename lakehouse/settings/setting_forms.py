"""Formats of setting values, and the error for invalid ones."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from lakehouse.errors import SettingsError


class Form(NamedTuple):
    """The format of a setting."""

    pattern: str
    expected: str
    """Its description for errors."""
    is_secret: bool = False
    """Whether errors must not show the value."""


MEMORY = Form(r"[1-9]\d*[kmgtKMGT]", "a number and its unit, such as 512m or 4g")
VERSION = Form(
    r"\d+\.\d+\.\d+(-[\w.-]+)?",
    "a version, such as 1.12.0, or 1.7.1-amzn-2 of a distribution",
)
COUNT = Form(r"[1-9]\d*", "a number from 1 on")
HOST = Form(r"[\w.:-]+", "a name or an address of this machine")
WEB_ADDRESS = Form(r"https?://[^\s/]+.*", "the address of a web page, such as http://host:8080")
# A mistyped value can be a token.
SECRET_ADDRESS = WEB_ADDRESS._replace(is_secret=True)
ARCHIVE = Form(
    # Spark separates archives by commas, and their aliases by #.
    r"(s3://[^/#?%,\s]+/|(?!\S*://))[^#?%,\s]+\.(tar\.gz|tgz)",
    "a file such as executors.tar.gz, or s3://bucket/executors.tar.gz, without spaces and #?%,",
)
CONNECT = Form(
    # The client requires `/` before the first `;`, and a `=` in each parameter.
    r"sc://([^\s/?#;:@=\[\]]+|\[[\da-fA-F:.]+\])"
    r"(:([1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5]))?"
    r"(/(;[^\s?#;=]+=[^\s?#;=]*)*)?",
    "sc://HOST:PORT, or sc://HOST:PORT/;token=TOKEN, with %3D for a `=` in a token",
    is_secret=True,
)


def read_value(env: Mapping[str, str], name: str, form: Form) -> str | None:
    """Return a setting, or None if it is unset; raises SettingsError."""
    value = env.get(name) or None
    if value and not re.fullmatch(form.pattern, value):
        actual = "invalid" if form.is_secret else repr(value)
        raise SettingsError(
            f"{name} is {actual}; expected {form.expected}.",
            next_step="Correct it, or unset it.",
        )
    return value


def read_count(env: Mapping[str, str], name: str) -> int | None:
    """Return a positive integer setting, or None if it is unset; raises SettingsError."""
    value = read_value(env, name, COUNT)
    return int(value) if value else None


def read_path(env: Mapping[str, str], name: str) -> Path | None:
    """Return a path setting as an absolute path; None if it is unset."""
    value = env.get(name)
    return Path(value).expanduser().absolute() if value else None


def is_in_bucket(place: str) -> bool:
    """Return whether an archive is in S3."""
    return place.startswith("s3://")


def absolute_place(value: str) -> str:
    """Return a location; a local path becomes absolute."""
    return value if "://" in value else str(Path(value).expanduser().absolute())
