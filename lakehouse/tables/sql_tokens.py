"""A tokenizer for Spark SQL: words, quoted names, texts and marks, without comments and white
space.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

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
    """Return the end of a bracketed comment; comments nest, and an unclosed one ends with the
    text.
    """
    depth = 0
    for mark in _COMMENT_MARK.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)
