"""Python as the formatter leaves it: a call or a collection on one line where that fits, else a
part on each.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

Code = Union[str, "Call", "Collection"]


@dataclass(frozen=True)
class Call:
    """A call of `name`; parts are arguments, such as `"TABLE"` or `Argument("by", …)`.

    `is_open` puts each argument on a line of its own, however short they are.
    """

    name: str
    parts: Sequence["Code | Argument"]
    is_open: bool = False

    @property
    def ends(self) -> tuple[str, str]:
        """What stands before and behind the parts."""
        return f"{self.name}(", ")"


@dataclass(frozen=True)
class Argument:
    """An argument with a name, or a key with its value where `sign` is a colon."""

    name: str
    value: Code
    sign: str = "="


@dataclass(frozen=True)
class Collection:
    """A list or a dictionary."""

    parts: Sequence["Code | Argument"]
    brackets: str = "[]"
    is_open: bool = False

    @property
    def ends(self) -> tuple[str, str]:
        """What stands before and behind the parts."""
        return self.brackets[0], self.brackets[1]


@dataclass(frozen=True)
class Layout:
    """How wide lines are."""

    width: int

    def statement(self, head: str, code: Code, *, indent: int = 0, tail: str = "") -> str:
        """Return a statement that begins with `head`, such as `TABLE = `."""
        return self._placed(" " * indent + head, code, indent, tail)

    def comments(self, notes: Sequence[str], *, title: str, indent: int = 0) -> str:
        """Return a title and notes below it as lines of a comment; nothing where there are no
        notes.
        """
        if not notes:
            return ""
        start = " " * indent + "# "
        lines = textwrap.wrap(title, self.width, initial_indent=start, subsequent_indent=start)
        for note in notes:
            lines += textwrap.wrap(
                note,
                self.width,
                initial_indent=f"{start}- ",
                subsequent_indent=f"{start}  ",
                break_on_hyphens=False,
            )
        return "".join(f"{line}\n" for line in lines)

    def docstring(self, text: str, *, indent: int = 0) -> str:
        """Return a docstring, wrapped where it does not fit in one line with its quotes."""
        start = " " * indent
        whole = f'{start}"""{text}"""'
        if len(whole) <= self.width:
            return whole
        lines = textwrap.wrap(
            f'"""{text}', self.width - len('"""'), initial_indent=start, subsequent_indent=start
        )
        return "\n".join([*lines, f'{start}"""'])

    def _placed(self, head: str, code: Code, indent: int, tail: str) -> str:
        flat = head + self._flat(code) + tail
        if isinstance(code, str) or (len(flat) <= self.width and not self._has_open(code)):
            return flat
        start, end = code.ends
        return f"{head}{start}\n{self._body(code, indent + 4)}\n{' ' * indent}{end}{tail}"

    def _body(self, code: "Call | Collection", indent: int) -> str:
        joined = " " * indent + ", ".join(map(self._flat, code.parts))
        is_open = self._has_open(code)
        if isinstance(code, Call) and len(joined) <= self.width and not is_open:
            return joined
        return "\n".join(self._part(part, indent) for part in code.parts)

    def _part(self, part: "Code | Argument", indent: int) -> str:
        start = " " * indent
        if isinstance(part, Argument):
            return self._placed(f"{start}{self._named(part)}", part.value, indent, ",")
        return self._placed(start, part, indent, ",")

    def _flat(self, code: "Code | Argument") -> str:
        if isinstance(code, str):
            return code
        if isinstance(code, Argument):
            return self._named(code) + self._flat(code.value)
        start, end = code.ends
        return f"{start}{', '.join(map(self._flat, code.parts))}{end}"

    def _named(self, part: Argument) -> str:
        return f"{part.name}{part.sign}" + (" " if part.sign == ":" else "")

    def _has_open(self, code: "Code | Argument") -> bool:
        if isinstance(code, str):
            return False
        if isinstance(code, Argument):
            return self._has_open(code.value)
        return code.is_open or any(map(self._has_open, code.parts))


def quoted_text(text: str) -> str:
    """Return a text as Python writes it, in double quotes where that needs no escape."""
    plain = repr(text)
    if plain.startswith("'") and '"' not in plain:
        return f'"{plain[1:-1]}"'
    return plain


def import_lines(imports: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Return sorted lines that import names, given as `(module, name)` or `(module, "A as B")`.

    An import with `as` stands on a line of its own, as the formatter has it.
    """
    by_module: dict[str, list[str]] = {}
    alone: list[tuple[str, str]] = []
    for module, name in dict.fromkeys(imports):
        if " as " in name:
            alone.append((module, name))
        else:
            by_module.setdefault(module, []).append(name)
    grouped = [
        (module, ", ".join(sorted(names, key=_import_order)))
        for module, names in by_module.items()
    ]
    lines = []
    for module, names in sorted(
        [*grouped, *alone], key=lambda line: (line[0], " as " in line[1])
    ):
        line = f"from {module} import {names}"
        if len(line) <= width:
            lines.append(line)
        else:
            lines += [
                f"from {module} import (",
                *(f"    {name}," for name in names.split(", ")),
                ")",
            ]
    return lines


def _import_order(name: str) -> tuple[int, str]:
    """Order constants, then classes, then functions, as the formatter does."""
    if name.isupper():
        return 0, name
    return (1 if name[0].isupper() else 2), name
