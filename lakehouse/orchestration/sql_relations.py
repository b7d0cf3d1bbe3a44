"""Tables that a query names, from its text; Spark parses the query at run time.

Inputs are thus known at load time, and a query can read only its pinned inputs.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from lakehouse.tables.sql_tokens import Token

QUERY_WORDS = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE"})
"""Keywords that can start a query."""
_AFTER_FROM = frozenset(
    {
        *("WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT"),
        *("OFFSET", "WINDOW", "QUALIFY", "UNION", "EXCEPT", "INTERSECT", "MINUS", "PIVOT"),
        *("UNPIVOT", "SELECT", "VALUES"),
    }
)
"""Keywords that end a FROM clause or start inline rows."""
_NO_NAMES = frozenset({"LATERAL", "TABLE", "SELECT", "WITH", "VALUES"})
"""Keywords that can precede or replace a table name."""


@dataclass
class _Level:
    """State within two parentheses: whether it is a query, and what the next name can be."""

    is_query: bool = False
    is_in_from: bool = False
    expects_name: bool = False


@dataclass(frozen=True)
class NamedTable:
    """A table name after FROM or JOIN, and its offset in the text."""

    name: str
    start: int


def named_tables(tokens: Sequence[Token], inputs: Collection[str] = ()) -> list[NamedTable]:
    """Return the tables that a query names, in order, without its own CTEs.

    :param inputs: names to include even if a CTE has the same name, as in
        `WITH a AS (SELECT * FROM a)`.
    """
    own = {name.lower() for name in _defined_by_with(tokens)}
    own -= {name.lower() for name in inputs}
    return [table for table in _read(tokens) if table.name.lower() not in own]


def _read(tokens: Sequence[Token]) -> Iterator[NamedTable]:
    levels = [_Level()]
    at = 0
    while at < len(tokens):
        token, level = tokens[at], levels[-1]
        if token.is_mark("("):
            levels.append(_opened(level, tokens[at + 1 : at + 2]))
        elif token.is_mark(")"):
            levels = levels[:-1] or [_Level()]
        elif token.is_mark(","):
            level.expects_name = level.is_in_from
        elif token.is_mark("|"):
            # The pipe `|>` starts another step, which can list columns.
            level.is_in_from = level.expects_name = False
        elif level.expects_name and token.is_name and token.keyword not in _NO_NAMES:
            parts = _dotted(tokens, at)
            at += 2 * len(parts) - 2
            level.expects_name = False
            is_function = at + 1 < len(tokens) and tokens[at + 1].is_mark("(")
            if not is_function:
                yield NamedTable(".".join(parts), token.start)
        else:
            _look_at_word(level, tokens, at)
        at += 1


def _opened(level: _Level, following: Sequence[Token]) -> _Level:
    """Return the level for an open parenthesis: after FROM, a subquery or joined tables."""
    is_joined = level.expects_name and not any(
        token.keyword in QUERY_WORDS or token.is_mark("(") for token in following
    )
    is_nested = level.expects_name and any(token.is_mark("(") for token in following)
    level.expects_name = False
    return _Level(is_query=is_joined, is_in_from=is_joined, expects_name=is_joined or is_nested)


def _look_at_word(level: _Level, tokens: Sequence[Token], at: int) -> None:
    word = tokens[at].keyword
    starts = at == 0 or tokens[at - 1].is_mark("(")
    if word in ("SELECT", "WITH") or (starts and word in QUERY_WORDS):
        level.is_query = True
    is_from = word == "FROM" and level.is_query and not _is_distinct_from(tokens, at)
    if is_from or word == "JOIN" or (word == "TABLE" and starts):
        level.is_in_from = level.expects_name = True
    elif word in _AFTER_FROM or (word == "VIEW" and tokens[at - 1].keyword == "LATERAL"):
        level.is_in_from = level.expects_name = False


def _is_distinct_from(tokens: Sequence[Token], at: int) -> bool:
    before = [token.keyword for token in tokens[max(0, at - 2) : at]]
    return before in (["IS", "DISTINCT"], ["NOT", "DISTINCT"])


def _dotted(tokens: Sequence[Token], at: int) -> list[str]:
    parts = [tokens[at].text]
    while at + 2 < len(tokens) and tokens[at + 1].is_mark(".") and tokens[at + 2].is_name:
        at += 2
        parts.append(tokens[at].text)
    return parts


def _defined_by_with(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the CTE names: those before `AS (`, also with a column list in between."""
    for at, token in enumerate(tokens):
        after = at + 1
        if token.is_name and after < len(tokens) and tokens[after].is_mark("("):
            after = _closing(tokens, after) + 1
        starts = [following.text.upper() for following in tokens[after : after + 2]]
        if token.is_name and starts == ["AS", "("]:
            yield token.text


def _closing(tokens: Sequence[Token], at: int) -> int:
    """Return the position of the matching parenthesis; the end of the text without one."""
    depth = 0
    for position in range(at, len(tokens)):
        depth += tokens[position].is_mark("(") - tokens[position].is_mark(")")
        if depth == 0:
            return position
    return len(tokens)
