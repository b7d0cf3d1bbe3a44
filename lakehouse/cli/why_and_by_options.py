"""Who decided something and why: the options of the commands by which a person overrules,
rejects or silences.
"""

import getpass
import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from lakehouse.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
_PLACEHOLDER = re.compile(r"[\s.…<>?!*_'\"-]*|<?(TEXT|NAME|WHY|REASON)>?", re.IGNORECASE)
"""What stands for a text in messages and help, so that nobody's reason is that a command was
pasted.
"""


def why_option(text: str, *, required: bool = True) -> Callable[[F], F]:
    """Add `--why`: why it was decided, in words and not as the `…` that messages have there."""
    presence: dict[str, Any] = {"required": True} if required else {"default": ""}
    return click.option("--why", metavar="TEXT", callback=_check_words, help=text, **presence)


def is_placeholder(text: str) -> bool:
    """Whether a text only stands for one: nothing, `…`, `...`, `TEXT`."""
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
    help="Who decided it; you, where it is left out.",
)
"""Adds `--by`: who decided it."""
why_kept_option = why_option("Why; it is kept with the table.")
"""Adds `--why` of a decision about a table, which its snapshots keep."""
