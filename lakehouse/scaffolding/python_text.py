"""Python files with a declaration, formatted by ruff."""

import subprocess
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ruff import find_ruff_bin

from lakehouse.errors import LakehouseError
from lakehouse.tables.quoting import shown

CONFIRM = "Guessed from {source}; confirm or correct, then delete these lines:"
_WIDTH = 84
"""Of comments and docstrings, which ruff does not wrap; projects allow this or more."""
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
    `imports` can have names that are not used: `formatted` removes them.
    """

    table: str
    parameter: str
    doc: str
    imports: str
    declaration: str
    decorator: str
    body: str

    @property
    def text(self) -> str:
        """The text of the file, before it is formatted."""
        return _MODULE.format(
            docstring=docstring(f"`{self.table}`: {self.doc[:1].lower()}{self.doc[1:]}"),
            imports=self.imports,
            declaration=self.declaration,
            decorator=self.decorator,
            name=self.table.split(".")[1],
            parameter=self.parameter,
            description=textwrap.indent(docstring(self.doc), "    "),
            body=textwrap.indent(self.body, "    "),
        )


def formatted(text: str, path: Path, root: Path, package: str) -> str:
    """Return code without unused imports, formatted with the settings for a path.

    :param root: the folder of the project.
    :param package: the package of the project, whose imports are a section of their own.
    :raises LakehouseError: ruff does not accept the settings.
    """
    fix = ("check", "--fix-only", "--fixable=ALL", "--select")
    # The modules that the new file imports may not exist yet.
    own_package = ("--config", f"lint.isort.known-first-party=['{package}']")
    for command in ((*fix, "F401"), (*fix, "I", *own_package), ("format",)):
        done = subprocess.run(
            [find_ruff_bin(), *command, "--no-cache", "--quiet", "--stdin-filename", path, "-"],
            cwd=root,
            input=text,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        if done.returncode:
            raise LakehouseError(
                f"ruff cannot format {shown(str(path))}: {done.stderr.strip()}",
                next_step="Correct the settings of ruff in the project.",
            )
        text = done.stdout
    return text


def docstring(text: str) -> str:
    """Return a docstring, wrapped if it does not fit on one line with its quotes."""
    if len(text) + 6 <= _WIDTH:
        return f'"""{text}"""'
    return "\n".join([*textwrap.wrap(f'"""{text}', _WIDTH), '"""'])


def comments(title: str, notes: Sequence[str]) -> str:
    """Return a title and notes as lines of a comment; empty if there are no notes."""
    lines = [f"# {title}"] if notes else []
    for note in notes:
        lines += textwrap.wrap(
            note,
            _WIDTH,
            initial_indent="# - ",
            subsequent_indent="#   ",
            break_on_hyphens=False,
        )
    return "".join(f"{line}\n" for line in lines)
