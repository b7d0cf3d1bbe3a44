"""The parts that each file of a declaration has: docstring, imports, comments and the function."""

from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse.scaffolding.code_layout import Layout, import_lines

CONFIRM = "Guessed from {rows:,} rows of {files}; confirm or correct, then drop these lines:"
Import = tuple[str, str]


@dataclass(frozen=True)
class Module:
    """One file: `statements` stand between the imports and the function."""

    docstring: str
    imports: Sequence[Import]
    statements: Sequence[str]
    function: str
    own_package: str
    """The package that the assets are in; its imports stand behind those of `lakehouse`."""

    def text(self, layout: Layout) -> str:
        """Return the file's text."""
        own = [one for one in self.imports if _is_in(one[0], self.own_package)]
        others = [one for one in self.imports if one not in own]
        sections = [
            layout.docstring(self.docstring),
            "from __future__ import annotations",
            "from typing import TYPE_CHECKING",
            *("\n".join(import_lines(part, layout.width)) for part in (others, own) if part),
            "if TYPE_CHECKING:\n    from pyspark.sql import DataFrame",
            *self.statements,
        ]
        return "\n\n".join(sections) + f"\n\n\n{self.function}\n"


def function_text(
    layout: Layout, decorator: str, name: str, parameter: str, doc: str, body: str
) -> str:
    """Return a decorated function that is given one frame and returns one."""
    head = f"{decorator}\ndef {name}({parameter}: DataFrame) -> DataFrame:\n"
    return head + layout.docstring(doc, indent=4) + f"\n{body}"


def _is_in(module: str, package: str) -> bool:
    return package != "lakehouse" and f"{module}.".startswith(f"{package}.")
