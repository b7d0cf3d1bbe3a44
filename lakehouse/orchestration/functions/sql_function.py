"""A SQL file as the function of a table, and the tables that its query names."""

import inspect
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lakehouse.errors import ComputeFailed, DeclarationError
from lakehouse.iceberg.frames.spark_errors import is_of_query, line_of, one_line
from lakehouse.iceberg.read.inputs import Input
from lakehouse.tables.quoting import identifier, meant_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Kind = Literal["word", "quoted", "text", "mark"]
# A hint is not a comment: Spark reads its content. Characters that are neither ASCII nor part
# of a word separate words.
_TOKEN = re.compile(
    r"""
      (?P<space>\s+ | --(?:\\\n|[^\r\n])* | [^\x00-\x7f\w]+)
    | (?P<hint>/\*\+ | \*/)
    | (?P<comment>/\*)
    | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
    | (?P<text>'(?:[^'\\]|\\.|'')*(?:'|\Z) | "(?:[^"\\]|\\.|"")*(?:"|\Z))
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<dollar>\$(?P<tag>\w*)\$(?P<content>.*?)\$(?P=tag)\$)
    | (?P<word>\w+)
    | (?P<mark>=>|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_MARK = re.compile(r"/\*|\*/")


@dataclass(frozen=True)
class Token:
    """A word, a quoted name, a text (both without quotes) or a mark, and its position."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """The word in upper case; empty for other tokens."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "quoted")

    def is_mark(self, mark: str) -> bool:
        """Return whether it is this mark, and not a text or name that looks like it."""
        return self.kind == "mark" and self.text == mark


def tokenize(text: str) -> list[Token]:
    """Split SQL into tokens, as Spark's lexer does."""
    return list(_tokens(text))


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise AssertionError("unreachable: the last alternative takes any character")
        end = _comment_end(text, at) if match["comment"] else match.end()
        if token := _token(match):
            yield Token(*token, at, end)
        at = end


def _token(match: re.Match[str]) -> tuple[Kind, str] | None:
    if match["word"]:
        return "word", match[0]
    if match["mark"] or match["hint"]:
        return "mark", match[0]
    if match["quoted"]:
        return "quoted", match[0][1:-1].replace("``", "`")
    if match["raw"]:
        return "text", match[0][2:-1]
    if match["dollar"]:
        return "text", match["content"]
    return ("text", match[0][1:-1]) if match["text"] else None


def _comment_end(text: str, start: int) -> int:
    """Return the end of a bracketed comment, which may be nested or unclosed."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)


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


_PLACE_IN_TEXT = re.compile(r"\s*[(;]?\s*line \d+,? pos(?:ition)? \d+\)?")


class SqlFunction:
    """Computes a table by a query that reads its inputs as tables.

    Call it with the input DataFrames by name. They are not registered as views, so concurrent
    runs in one session do not affect each other.
    """

    def __init__(self, table: str, file: Path, place: str, inputs: Mapping[str, Input]) -> None:
        """Read and validate the query without Spark.

        :param table: table name for errors.
        :param place: file location for errors.
        :raises DeclarationError: the file is missing, is not one query, or does not read exactly
            its inputs.
        """
        self.table, self.file, self.place = table, file, place
        self._text = _read_text(table, file, place)
        self._inputs = tuple(inputs)
        self._check()
        self.__name__ = file.stem
        self.__doc__ = "\n".join(_leading_comment(self._text)) or None
        parameters = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in inputs
        ]
        self.__signature__ = inspect.Signature(parameters)

    def __call__(self, **frames: "DataFrame") -> "DataFrame":
        """Return the rows of the query.

        :raises ComputeFailed: Spark rejects the query; names the line and the cause.
        """
        named: dict[str, Any] = {
            f"input_{at}": frames[name] for at, name in enumerate(self._inputs)
        }
        spark = next(iter(named.values())).sparkSession
        try:
            frame: DataFrame = spark.sql(self._statement, **named)
            # Spark Connect analyzes a query only when its columns are requested.
            _ = frame.columns
        except Exception as error:
            if not is_of_query(error):
                raise
            line = line_of(error)
            at = f"{self.place}:{line}" if line else self.place
            cause = _PLACE_IN_TEXT.sub("", one_line(error)).rstrip(".")
            # The caller adds the next step.
            raise ComputeFailed(f"{self.table}: {at}: {cause}.") from None
        return frame

    @property
    def normalised(self) -> str:
        """The query without comments and white space, for the code version."""
        return repr([(token.kind, token.text) for token in self.tokens])

    @cached_property
    def tokens(self) -> Sequence[Token]:
        """The tokens of the query without trailing semicolons."""
        tokens = tokenize(self._text)
        while tokens and tokens[-1].is_mark(";"):
            tokens.pop()
        return tokens

    @cached_property
    def _statement(self) -> str:
        """The query with its inputs as CTEs on the first line, so that line numbers match."""
        end = self.tokens[-1].end
        defined = [
            f"{identifier(name)} AS (SELECT * FROM {{input_{at}}})"
            for at, name in enumerate(self._inputs)
        ]
        # Spark would format text in braces as an input.
        query = self._text[:end].replace("{", "{{").replace("}", "}}")
        return f"WITH {', '.join(defined)} ({query}\n)"

    def _check(self) -> None:
        if not self._inputs:
            raise DeclarationError(
                f"{self.table}: {self.place} has no inputs; expected the tables that it reads.",
                next_step='Say inputs={"fruits": FRUITS}, and read FROM fruits.',
            )
        if not self.tokens:
            raise self._wrong("is empty; expected a SELECT")
        first = self.tokens[0]
        if first.keyword not in QUERY_WORDS and not first.is_mark("("):
            raise self._wrong(f"begins with {first.text!r}; expected a SELECT", first.start)
        ends = [token for token in self.tokens if token.is_mark(";")]
        if ends:
            raise self._wrong("holds more than one statement; expected a SELECT", ends[0].end)
        self._check_tables()

    def _check_tables(self) -> None:
        named = named_tables(self.tokens, self._inputs)
        known = {name.lower() for name in self._inputs}
        for table in named:
            if table.name.lower() not in known:
                raise self._wrong(
                    f"reads {table.name}, which is none of its inputs;"
                    f" {meant_name(table.name, self._inputs)}",
                    table.start,
                    next_step="Name it among inputs=…, and read it by that name.",
                )
        read = {table.name.lower() for table in named}
        unread = [name for name in self._inputs if name.lower() not in read]
        if unread:
            raise self._wrong(
                f"does not read the input {', '.join(unread)}; expected each to stand after FROM"
                " or JOIN",
                next_step="Read it, or leave it out of inputs=….",
            )

    def _wrong(
        self, what: str, start: int | None = None, next_step: str = ""
    ) -> DeclarationError:
        line = "" if start is None else f":{self._text.count(chr(10), 0, start) + 1}"
        end = "" if what.endswith((".", "?")) else "."
        return DeclarationError(
            f"{self.table}: {self.place}{line} {what}{end}", next_step=next_step
        )


def _read_text(table: str, file: Path, place: str) -> str:
    if not file.is_file():
        raise DeclarationError(
            f"{table} is computed by {place}, which is not there; expected a file with its SELECT.",
            next_step="Write it beside the declaration, under the same name.",
        )
    try:
        # Some editors write a byte order mark.
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DeclarationError(
            f"{table}: {place} is no text in UTF-8: {error.reason} at byte {error.start}."
        ) from error


def _leading_comment(text: str) -> Iterator[str]:
    for line in text.strip().splitlines():
        stripped = line.strip()
        if not stripped.startswith("--"):
            return
        yield stripped.removeprefix("--").strip()
