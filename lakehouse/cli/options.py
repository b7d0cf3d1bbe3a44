"""Arguments and options that several commands share."""

import getpass
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lakehouse.cli.call_context import State
from lakehouse.errors import UsageError

if TYPE_CHECKING:
    from lakehouse.privacy.identity import Named
    from lakehouse.tables.table import IcebergTable


def declared_tables(state: State, names: tuple[str, ...]) -> "list[IcebergTable]":
    """Return the named tables, or all; with the columns that files of feeds added."""
    from lakehouse.ingestion.staged_frame import plan_landing_table

    wanted = [state.declared_table(name).name for name in names or sorted(state.declared)]
    declared = dict(state.declared)
    for feed in state.feeds.values():
        table = declared.get(feed.table)
        if table and {table.name, table.quarantine and table.quarantine.name} & {*wanted}:
            table, _ = plan_landing_table(feed, table, state.engine.catalog)
            quarantines = [table.quarantine] if table.quarantine else []
            declared |= {planned.name: planned for planned in (table, *quarantines)}
    return [declared[name] for name in wanted]


_TYPED = "lakehouse.typed"


class ShowGroup(click.Group):
    """A group that passes an unknown first word to its command `show`, and the options before
    that word to the command.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options before the first word, and keep them as they were typed."""
        ctx.meta[_TYPED] = list(args)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first word."""
        typed = ctx.meta[_TYPED]
        options = typed[: len(typed) - len(args)]
        if args and self.get_command(ctx, args[0]) is None:
            return "show", self.get_command(ctx, "show"), [*options, *args]
        name, command, rest = super().resolve_command(ctx, args)
        return name, command, [*options, *rest]


F = TypeVar("F", bound=Callable[..., Any])


def why_option(text: str, *, required: bool = True) -> Callable[[F], F]:
    """Add `--why`; it must not be blank or `…`."""
    presence: dict[str, Any] = {"required": True} if required else {"default": ""}
    return click.option("--why", metavar="TEXT", callback=_check_words, help=text, **presence)


def _check_words(context: click.Context, option: click.Parameter, text: str) -> str:
    source = context.get_parameter_source(option.name or "")
    if source is click.core.ParameterSource.DEFAULT or text.strip(" .…"):
        return text
    raise UsageError(
        f"{option.opts[0]} is {text!r}; expected some words, which are kept for others to read."
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


_EXPECTED = "expected a time to come, such as 2h, 30m, 3d or 2026-12-01T08:00+08:00"


def future_timestamp(option: str, text: str, now: datetime) -> datetime:
    """Return a future timestamp in UTC; raises UsageError."""
    import pandas as pd

    try:
        if text[-1:] in ("m", "h", "d", "w"):
            timestamp = (
                now + pd.Timedelta(text.replace("d", "D").replace("w", "W")).to_pytimedelta()
            )
        else:
            timestamp = datetime.fromisoformat(text)
        is_future = timestamp > now
        timestamp = timestamp.astimezone(UTC)
    except (ValueError, OverflowError, TypeError) as error:
        # A timestamp without an offset cannot be compared.
        raise UsageError(f"{option} is {text!r}; {_EXPECTED}.") from error
    if not is_future:
        raise UsageError(f"{option} is {text!r}, which is past; {_EXPECTED}.")
    return timestamp


_BYTE_ORDER_MARK = "\ufeff"
"""Some editors write it."""


def read_standard_input(expected: str) -> str:
    """Return standard input; raises UsageError with `expected`, such as `statements`."""
    if sys.stdin is None or sys.stdin.closed:
        raise UsageError(f"Standard input is closed; expected {expected} there.")
    return _read(sys.stdin.read, "Standard input", expected)


def _read(read: Callable[[], str], name: str, expected: str) -> str:
    try:
        return read().removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        # The error text contains the byte, which can be part of a value.
        raise UsageError(
            f"{name} is not {error.encoding}; expected {expected} in it."
        ) from error
    except OSError as error:
        raise UsageError(
            f"{name} cannot be read ({error.strerror}); expected {expected} in it."
        ) from error


STANDARD_INPUT = "-"
_PAIRS = "lines of SUBJECT=VALUE"


def parse_people(texts: Iterable[str], file: Path | None = None) -> "list[Named]":
    """Return the people named by arguments and by the lines of a file.

    `-` reads lines of SUBJECT=VALUE from standard input, `SUBJECT=-` lines of values. Blank
    lines are ignored.

    :raises UsageError: invalid form or no people; contains no values.
    """
    from lakehouse.privacy.identity import Named

    lines: list[str] = []
    for text in texts:
        column, _, value = text.partition("=")
        if text == STANDARD_INPUT:
            lines += read_standard_input(_PAIRS).split("\n")
        elif value == STANDARD_INPUT:
            values = read_standard_input("lines of values").split("\n")
            lines += [f"{column}={value}" for value in values if value.strip()]
        else:
            # An empty argument is an error, an empty line is not.
            lines.append(text or "=")
    if file is not None:
        read = partial(file.read_text, encoding="utf-8")
        lines += _read(read, str(file), _PAIRS).split("\n")
    pairs = [_pair(line.rstrip("\r")) for line in lines if line.strip()]
    if not pairs:
        raise UsageError(
            "Nobody is named; expected SUBJECT=VALUE, such as customer_id=123.",
            next_step="Standard input was empty, where - stands for it.",
        )
    return [Named(column, value) for column, value in dict.fromkeys(pairs)]


def _pair(text: str) -> tuple[str, str]:
    column, _, value = text.partition("=")
    if not (column.strip() and value.strip()):
        # The text can be a personal value: keep it out of the error.
        raise UsageError(
            "A person is not named as SUBJECT=VALUE; expected a column that stands for a person"
            " or identifies one, and its value, such as customer_id=123.",
        )
    return column.strip(), value
