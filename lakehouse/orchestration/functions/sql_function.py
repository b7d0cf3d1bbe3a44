"""A SQL file as the function of a table, and the tables that its query names."""

import inspect
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lakehouse.errors import ComputeFailed, DeclarationError
from lakehouse.iceberg.frames.spark_errors import is_of_query, line_of, one_line
from lakehouse.iceberg.read.inputs import Input
from lakehouse.tables.quoting import identifier, meant_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


QUERY_WORDS = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE"})
"""Keywords that can start a query."""
_DIALECT = "spark"


class Token(NamedTuple):
    """A word, name, text or mark as it is written, and its position."""

    text: str
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """The word in upper case; empty for other tokens."""
        word = re.match(r"\w*", self.text)
        return word[0].upper() if word else ""

    def is_mark(self, mark: str) -> bool:
        """Return whether it is this mark, and not a text or name that looks like it."""
        return self.text == mark


def tokenize(text: str) -> list[Token]:
    """Split SQL into tokens without comments; an unclosed text or comment leaves only words."""
    # Takes a tenth of a second, and few processes read SQL.
    import sqlglot
    from sqlglot.errors import TokenError

    try:
        found = [(token.start, token.end + 1) for token in sqlglot.tokenize(text, _DIALECT)]
    except TokenError:
        found = [match.span() for match in re.finditer(r"\S+", text)]
    return [Token(text[start:end], start, end) for start, end in found]


class NamedTable(NamedTuple):
    """A table name after FROM or JOIN, and its offset in the text."""

    name: str
    start: int


def named_tables(query: str, inputs: Collection[str] = ()) -> list[NamedTable] | None:
    """Return the tables that a query names, in order, without its own CTEs.

    :param inputs: names to include even if a CTE has the same name, as in
        `WITH a AS (SELECT * FROM a)`.
    :return: None if the query cannot be parsed; Spark reports why, or can run it.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(query, dialect=_DIALECT)
    except SqlglotError:
        return None
    if not isinstance(tree, exp.Query):
        return None
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    own -= {name.lower() for name in inputs}
    tables = []
    for table in tree.find_all(exp.Table):
        name = ".".join(part.name for part in table.parts)
        # Functions are tables too, and the arguments of hints.
        is_table = isinstance(table.this, exp.Identifier) and not table.find_ancestor(exp.Hint)
        if is_table and name.lower() not in own:
            tables.append(NamedTable(name, table.parts[0].meta["start"]))
    return sorted(tables, key=lambda table: table.start)


_PLACE_IN_TEXT = re.compile(r"\s*[(;]?\s*line \d+,? pos(?:ition)? \d+\)?")


class SqlFunction:
    """Computes a table by a query that reads its inputs as tables.

    Call it with the input DataFrames by name. They are not registered as views, so concurrent
    runs in one session do not affect each other.
    """

    def __init__(self, table: str, file: Path, place: str, inputs: Mapping[str, Input]) -> None:
        """Read and validate the query without Spark.

        If sqlglot cannot parse the query, its tables are not validated.

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
        return repr([token.text for token in self.tokens])

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
        named = named_tables(self._text[: self.tokens[-1].end], self._inputs)
        if named is None:
            return
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
