"""`CALL` of a procedure: which one, and on which table, as far as the text tells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakehouse.cli.sql_text.table_names import Name, read_name, read_text
from lakehouse.tables.sql_tokens import Token, keywords

_ORPHANS = "remove_orphan_files"
_READING = frozenset({"ancestors_of", "create_changelog_view"})
_TABLE_IS_SECOND = frozenset({"snapshot"})
_TAKING_FILES = frozenset({"register_table", "add_files"})
_FILES = frozenset({"location", "file_list_view"})
_LOCATION_AT = 2
"""Where `remove_orphan_files` takes a folder by position."""


@dataclass(frozen=True)
class Call:
    """A procedure in lower case, and the name of its table; each is empty where the text does
    not tell.
    """

    procedure: str
    table: Name
    is_dry_run: bool = False
    names_files: bool = False
    """Whether it takes files, or removes them, that may be those of another table."""

    @property
    def writes(self) -> bool:
        """Whether it may change its table."""
        return self.procedure not in _READING and not self.is_dry_run


def read_call(tokens: Sequence[Token]) -> Call:
    """Read what follows the word CALL."""
    procedure = "".join(part.lower() for part in read_name(tokens)[-1:])
    positional, named = _arguments(tokens)
    at = 1 if procedure in _TABLE_IS_SECOND else 0
    argument = named.get("table") or next(iter(positional[at : at + 1]), ())
    text = argument[0].plain_text if len(argument) == 1 else None
    is_dry_run = keywords(named.get("dry_run", ())) == ["TRUE"]
    return Call(
        procedure,
        read_text(text) if text else (),
        is_dry_run and procedure == _ORPHANS,
        procedure in _TAKING_FILES
        or not _FILES.isdisjoint(named)
        or (procedure == _ORPHANS and len(positional) > _LOCATION_AT),
    )


def _arguments(
    tokens: Sequence[Token],
) -> tuple[list[Sequence[Token]], Mapping[str, Sequence[Token]]]:
    """Return the arguments of a call: those by position, and those by name."""
    positional: list[Sequence[Token]] = []
    named: dict[str, Sequence[Token]] = {}
    for argument in _split_arguments(tokens):
        if len(argument) > 2 and argument[0].is_name and argument[1].is_mark("=>"):
            named[argument[0].text.lower()] = argument[2:]
        else:
            positional.append(argument)
    return positional, named


def _split_arguments(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """Split what is in the last parentheses of the outermost level at its commas."""
    depth, start = 0, 0
    arguments: list[Sequence[Token]] = []
    for at, token in enumerate(tokens):
        if token.is_mark("("):
            depth += 1
            if depth == 1:
                # `IDENTIFIER('…')` before it has parentheses too.
                arguments, start = [], at + 1
        elif depth == 1 and (token.is_mark(",") or token.is_mark(")")):
            arguments.append(tokens[start:at])
            start = at + 1
        if token.is_mark(")"):
            depth -= 1
    return arguments
