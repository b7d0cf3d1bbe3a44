"""SUBJECT=VALUE arguments, also from standard input to keep values out of the shell history."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.cli.text_input import lines_of_file, lines_of_standard_input
from lakehouse.errors import UsageError

if TYPE_CHECKING:
    from lakehouse.privacy.identity import Named

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
            for line_number, line in lines_of_standard_input(_PAIRS):
                yield _pair(line, f"Line {line_number} of standard input")
            continue
        column, value = _pair(text, f"Argument {number}")
        if value != STANDARD_INPUT:
            yield column, value
            continue
        for _, line in lines_of_standard_input(_VALUES):
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
