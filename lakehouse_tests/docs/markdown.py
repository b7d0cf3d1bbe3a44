"""Reading a page of documentation: its sections, and the code blocks in them."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(?P<marks>#{1,6}) (?P<title>.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: language, words after it, text, and line in the page."""

    language: str
    words: tuple[str, ...]
    text: str
    line: int


@dataclass(frozen=True)
class Section:
    """A heading, and what stands below it up to the next one."""

    title: str
    level: int
    text: str
    blocks: tuple[Block, ...]


def blocks(text: str, first_line: int = 1) -> tuple[Block, ...]:
    """Return the fenced blocks of a text, in order."""
    return tuple(
        _block(match, first_line + text[: match.start()].count("\n"))
        for match in _FENCE.finditer(text)
    )


def sections(page: Path) -> list[Section]:
    """Return the sections of a page; headings inside of blocks are none."""
    text = page.read_text(encoding="utf-8")
    fenced = [match.span() for match in _FENCE.finditer(text)]
    headings = [
        match
        for match in _HEADING.finditer(text)
        if not any(start < match.start() < end for start, end in fenced)
    ]
    ends = [*(match.start() for match in headings[1:]), len(text)]
    return [_section(text, match, end) for match, end in zip(headings, ends, strict=True)]


def _section(text: str, heading: re.Match[str], end: int) -> Section:
    body = text[heading.end() : end]
    line = text[: heading.end()].count("\n") + 1
    return Section(heading["title"], len(heading["marks"]), body, blocks(body, line))


def _block(match: re.Match[str], line: int) -> Block:
    language, *words = match["info"].split() or [""]
    return Block(language, tuple(words), match["text"], line)
