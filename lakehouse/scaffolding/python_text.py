"""Python code as the formatter leaves it."""

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

CONFIRM = "Guessed from {source}; confirm or correct, then delete these lines:"
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[\[({]|[\])}]|,')
_MODULE = """\
{docstring}

from __future__ import annotations

from typing import TYPE_CHECKING

{imports}

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

{declaration}


{decorator}
def {name}({parameter}: DataFrame) -> DataFrame:
{description}
{body}
"""


@dataclass(frozen=True)
class AssetModule:
    """A file that declares a table and its asset.

    `doc` describes the rows of the table, `parameter` is that of the asset's function.
    """

    table: str
    parameter: str
    doc: str
    imports: str
    declaration: str
    decorator: str
    body: str

    def text(self, width: int) -> str:
        """Return the text of the file."""
        text = _MODULE.format(
            docstring=docstring(f"`{self.table}`: {self.doc[:1].lower()}{self.doc[1:]}", width),
            imports=self.imports,
            declaration=self.declaration.rstrip(),
            decorator=self.decorator,
            name=self.table.split(".")[1],
            parameter=self.parameter,
            description=textwrap.indent(docstring(self.doc, width - 4), "    "),
            body=self.body.rstrip(),
        )
        return formatted(text, width)


def formatted(text: str, width: int) -> str:
    """Return code without long lines: brackets have one part per line."""
    return "".join(f"{part}\n" for line in text.splitlines() for part in _split(line, width))


def _split(line: str, width: int) -> list[str]:
    """Split a long line at its last brackets that are in no other brackets."""
    code = line.lstrip(" ")
    indent = line[: len(line) - len(code)]
    if len(line) <= width or code.startswith(("#", '"""')):
        return [line]
    if code.startswith("from ") and "(" not in code:
        head, _, names = line.partition(" import ")
        line = f"{head} import ({names})"
    depth, marks = 0, list[int]()
    for token in _TOKEN.finditer(line):
        if token.group() in tuple("[({"):
            depth += 1
            marks = [token.start()] if depth == 1 else marks
        elif token.group() in tuple("])}"):
            depth -= 1
            marks += [token.start()] if depth == 0 else []
        elif token.group() == "," and depth == 1:
            marks.append(token.start())
    if len(marks) < 2:
        return [line]
    parts = [line[a + 1 : b].strip() for a, b in pairwise(marks)]
    lines = [line[: marks[0] + 1]]
    for part in filter(None, parts):
        lines += _split(f"{indent}    {part},", width)
    return [*lines, indent + line[marks[-1] :]]


def quoted_text(text: str) -> str:
    """Return a text as a literal, in double quotes if that needs no escape."""
    plain = repr(text)
    return f'"{plain[1:-1]}"' if plain.startswith("'") and '"' not in plain else plain


def quoted_list(texts: Iterable[str]) -> str:
    """Return texts as a list."""
    return f"[{', '.join(map(quoted_text, texts))}]"


def docstring(text: str, width: int) -> str:
    """Return a docstring, wrapped if it does not fit on one line with its quotes."""
    if len(text) + 6 <= width:
        return f'"""{text}"""'
    return "\n".join([*textwrap.wrap(f'"""{text}', width - 3), '"""'])


def comments(title: str, notes: Sequence[str], width: int) -> str:
    """Return a title and notes as lines of a comment; empty if there are no notes."""
    if not notes:
        return ""
    lines = textwrap.wrap(title, width, initial_indent="# ", subsequent_indent="# ")
    for note in notes:
        lines += textwrap.wrap(
            note,
            width,
            initial_indent="# - ",
            subsequent_indent="#   ",
            break_on_hyphens=False,
        )
    return "".join(f"{line}\n" for line in lines)


def import_lines(imports: Iterable[tuple[str, str]], package: str, width: int) -> str:
    """Return imports in the formatter's order, those of the project in a section of their own.

    :param imports: modules with a name each, such as `A` or `A as B`.
    :param package: the package of the project's assets.
    """
    own = package.split(".")[0]
    by_line: dict[tuple[bool, str, bool], set[str]] = {}
    for module, name in imports:
        is_own = own != "lakehouse" and module.split(".")[0] == own
        by_line.setdefault((is_own, module, " as " in name), set()).add(name)
    sections: dict[bool, list[str]] = {}
    for (is_own, module, _), names in sorted(by_line.items()):
        # Constants precede classes, and classes functions.
        ordered = sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))
        line = f"from {module} import {', '.join(ordered)}"
        sections.setdefault(is_own, []).extend(_split(line, width))
    return "\n\n".join("\n".join(lines) for lines in sections.values())
