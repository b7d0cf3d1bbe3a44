"""The names of tables in a text of SQL, and which of the catalog's tables they can mean."""

from collections.abc import Iterator, Sequence

from lakehouse.iceberg.metadata.catalog import CATALOG_NAME
from lakehouse.tables.sql_tokens import Token, tokenize

ANY_TABLE = "*.*"
_BEFORE_NAMES = frozenset({"TABLE", "IF", "NOT", "EXISTS"})

Name = tuple[str, ...]
"""The parts of a dotted name; none where the text does not tell."""


def read_name(tokens: Sequence[Token]) -> Name:
    """Read the dotted name at the beginning, past such words as `IF EXISTS`; nothing where the
    text does not tell.
    """
    while tokens and tokens[0].keyword in _BEFORE_NAMES:
        tokens = tokens[1:]
    if _is_identifier_clause(tokens):
        return _named_by_text(tokens)
    parts: list[str] = []
    while tokens and tokens[0].is_name and not _is_identifier_clause(tokens):
        parts.append(tokens[0].text)
        if not _begins(tokens[1:], "."):
            return tuple(parts)
        tokens = tokens[2:]
    return ()


def _is_identifier_clause(tokens: Sequence[Token]) -> bool:
    return bool(tokens) and tokens[0].keyword == "IDENTIFIER" and _begins(tokens[1:], "(")


def _named_by_text(tokens: Sequence[Token]) -> Name:
    """Read `IDENTIFIER('silver.fruits')`; any other expression in it, or a part after it, is
    not told by the text.
    """
    text = tokens[2].plain_text if len(tokens) > 3 and tokens[3].is_mark(")") else None
    return () if text is None or _begins(tokens[4:], ".") else read_text(text)


def read_text(text: str) -> Name:
    """Read the whole of a text as a dotted name."""
    tokens = tokenize(text)
    name = read_name(tokens)
    return name if len(tokens) == 2 * len(name) - 1 else ()


def _begins(tokens: Sequence[Token], mark: str) -> bool:
    return bool(tokens) and tokens[0].is_mark(mark)


def patterns(name: Name) -> Iterator[str]:
    """Yield the tables of the catalog that a name can mean, as `namespace.table` or a pattern
    of it.
    """
    parts = [part.lower() for part in name]
    if not parts:
        yield ANY_TABLE
    elif len(parts) == 1:
        yield f"*.{parts[0]}"
    elif parts[0] == CATALOG_NAME:
        yield ".".join(parts[1:3]) if len(parts) > 2 else f"{CATALOG_NAME}.{parts[1]}"
    elif len(parts) == 2 or parts[2].startswith("branch_"):
        yield ".".join(parts[:2])
    # What is left is a table of another catalog.
