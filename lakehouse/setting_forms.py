"""How values of settings look, and the error about one that looks otherwise."""

import re
from collections.abc import Mapping

from lakehouse.errors import SettingsError

MEMORY = (r"[1-9]\d*[kmgtKMGT]", "a number and its unit, such as 512m or 4g")
VERSION = (r"\d+\.\d+\.\d+", "a version, such as 1.12.0")
COUNT = (r"[1-9]\d*", "a number from 1 on")
PORT = (r"[1-9]\d{3,4}", "a port from 1024 on, such as 40000")
HOST = (r"[\w.:-]+", "a name or an address of this machine")


def value_of_form(
    env: Mapping[str, str], name: str, form: tuple[str, str], default: str
) -> str:
    """Return a setting's value, or the default where it is not set.

    :param form: a regular expression, and what it stands for in words.
    :raises SettingsError: when it looks otherwise.
    """
    value, (pattern, expected) = env.get(name), form
    if value and not re.fullmatch(pattern, value):
        otherwise = f" for {default}" if default else ""
        raise SettingsError(
            f"{name} is {value!r}; expected {expected}.",
            next_step=f"Correct it, or unset it{otherwise}.",
        )
    return value or default
