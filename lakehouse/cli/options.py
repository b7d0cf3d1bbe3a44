"""Arguments and options that several commands share."""

import getpass
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
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

    declared = dict(state.declared)
    for feed in state.feeds.values():
        if feed.table in declared:
            table, _ = plan_landing_table(feed, declared[feed.table], state.engine.catalog)
            quarantines = [table.quarantine] if table.quarantine else []
            declared |= {planned.name: planned for planned in (table, *quarantines)}
    return [declared[state.declared_table(name).name] for name in names or sorted(declared)]


class ShowGroup(click.Group):
    """A group that passes an unknown first word to its command `show`, and the options before
    that word to the command.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first word."""
        options = _given_options(self, ctx)
        if args and self.get_command(ctx, args[0]) is None:
            return "show", self.get_command(ctx, "show"), [*options, *args]
        name, command, rest = super().resolve_command(ctx, args)
        return name, command, [*options, *rest]


def _given_options(group: click.Group, context: click.Context) -> list[str]:
    """Return the options of a group on the command line as words."""
    words = []
    for option in group.params:
        source = context.get_parameter_source(option.name or "")
        if source is click.core.ParameterSource.COMMANDLINE:
            words.append(option.opts[0])
            if not (isinstance(option, click.Option) and option.is_flag):
                words.append(str(context.params[option.name or ""]))
    return words


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


_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"(?:\d{1,6}[mhdw])+", re.ASCII)
_EXPECTED = "expected such as 2h, 30m or 3d, or 2026-12-01T08:00+08:00"


def future_timestamp(option: str, text: str, now: datetime) -> datetime:
    """Return a future timestamp in UTC; raises UsageError."""
    timestamp = _after(text, now) if _DURATION.fullmatch(text) else _at(option, text)
    if timestamp is None:
        raise UsageError(f"{option} is {text!r}, beyond the end of the calendar; {_EXPECTED}.")
    if timestamp <= now:
        raise UsageError(f"{option} is {text!r}, which is past; expected a moment to come.")
    return timestamp


def _after(text: str, now: datetime) -> datetime | None:
    timestamp = now
    try:
        for number, unit in re.findall(r"(\d+)([mhdw])", text):
            timestamp += timedelta(**{_UNITS[unit]: int(number)})
        return timestamp
    except OverflowError:
        return None


def _at(option: str, text: str) -> datetime | None:
    try:
        timestamp = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} is {text!r}; {_EXPECTED}.") from None
    if timestamp.tzinfo is None:
        raise UsageError(
            f"{option} is {text!r}, without its offset from UTC; {_EXPECTED}, or with a Z at"
            " the end."
        )
    try:
        return timestamp.astimezone(UTC)
    except OverflowError:
        return None


_STANDARD_INPUT = "Standard input"
_BYTE_ORDER_MARK = "\ufeff"


def read_standard_input(expected: str) -> str:
    """Return standard input; raises UsageError with `expected`, such as `statements`."""
    if sys.stdin is None or sys.stdin.closed:
        raise UsageError(f"{_STANDARD_INPUT} is closed; expected {expected} there.")
    with _explained(_STANDARD_INPUT, expected):
        return sys.stdin.read().removeprefix(_BYTE_ORDER_MARK)


def lines_of_file(file: Path, expected: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each non-blank line of a UTF-8 file; raises UsageError."""
    with _explained(str(file), expected):
        # Some editors write a byte order mark.
        text = file.read_text(encoding="utf-8-sig")
    yield from _lines(text)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.rstrip("\r")


@contextmanager
def _explained(name: str, expected: str) -> Iterator[None]:
    try:
        yield
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
_VALUES = "lines of values"


def parse_people(texts: Iterable[str], file: Path | None = None) -> "list[Named]":
    """Return the people named by arguments and by the lines of a file.

    `-` reads lines of SUBJECT=VALUE from standard input, `SUBJECT=-` lines of values. Blank
    lines are ignored.

    :raises UsageError: invalid form or no people; contains no values.
    """
    from lakehouse.privacy.identity import Named

    named = [Named(column, value) for column, value in (*_pairs(texts), *_pairs_of(file))]
    if not named:
        raise UsageError(
            "Nobody is named; expected SUBJECT=VALUE, such as customer_id=123.",
            next_step="Standard input was empty, where - stands for it.",
        )
    return list(dict.fromkeys(named))


def _pairs(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, text in enumerate(texts, start=1):
        if text == STANDARD_INPUT:
            for line_number, line in _lines(read_standard_input(_PAIRS)):
                yield _pair(line, f"Line {line_number} of standard input")
            continue
        column, value = _pair(text, f"Argument {number}")
        if value != STANDARD_INPUT:
            yield column, value
            continue
        for _, line in _lines(read_standard_input(_VALUES)):
            yield column, line


def _pairs_of(file: Path | None) -> Iterator[tuple[str, str]]:
    if file is None:
        return
    for number, line in lines_of_file(file, _PAIRS):
        yield _pair(line, f"Line {number} of {file}")


def _pair(text: str, place: str) -> tuple[str, str]:
    column, sign, value = text.partition("=")
    if not (sign and column.strip() and value.strip()):
        # The text can be a personal value: keep it out of the error.
        raise UsageError(
            f"{place} is not SUBJECT=VALUE; expected a column that stands for a person or"
            " identifies one, and its value, such as customer_id=123.",
        )
    return column.strip(), value
