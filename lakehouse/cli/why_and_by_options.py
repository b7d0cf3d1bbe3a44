"""Options `--why` and `--by` of commands that override, reject or mute."""

import getpass
import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from lakehouse.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
_PLACEHOLDER = re.compile(r"[\s.…<>?!*_'\"-]*|<?(TEXT|NAME|WHY|REASON)>?", re.IGNORECASE)
"""Placeholder texts of messages and help, which are not a valid reason."""


def why_option(text: str, *, required: bool = True) -> Callable[[F], F]:
    """Add `--why`; rejects placeholders."""
    presence: dict[str, Any] = {"required": True} if required else {"default": ""}
    return click.option("--why", metavar="TEXT", callback=_check_words, help=text, **presence)


def is_placeholder(text: str) -> bool:
    """Whether a text is empty or a placeholder: `…`, `...`, `TEXT`."""
    return _PLACEHOLDER.fullmatch(text.strip()) is not None


def _check_words(context: click.Context, option: click.Parameter, text: str) -> str:
    source = context.get_parameter_source(option.name or "")
    if source is click.core.ParameterSource.DEFAULT or not is_placeholder(text):
        return text
    raise UsageError(
        f"{option.opts[0]} is {text!r}, which only stands for a text; expected some words.",
        next_step=(
            f"Say {option.opts[0].removeprefix('--')} in place of it; it is kept, and others"
            " read it."
        ),
    )


by_option = click.option(
    "--by",
    metavar="NAME",
    default=getpass.getuser,
    callback=_check_words,
    help="Who decided it; default: you.",
)
"""Adds `--by`: the deciding user."""
why_kept_option = why_option("Why; it is kept with the table.")
"""Adds `--why` for a decision about a table, which its snapshots record."""
