"""Python files from templates, formatted by ruff."""

import subprocess
import textwrap
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ruff import find_ruff_bin

from lakehouse.errors import LakehouseError
from lakehouse.tables.quoting import shown

if TYPE_CHECKING:
    from jinja2 import Environment

_WIDTH = 84
"""Of comments and docstrings, which ruff does not wrap; projects allow this or more."""


def render(template: str, **values: object) -> str:
    """Return the text of a new file; it can have imports that are not used."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(  # noqa: S701  Python is no HTML.
        loader=PackageLoader("lakehouse.scaffolding"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "repr": repr,
        "docstring": docstring,
        "uncapitalized": lambda text: text[:1].lower() + text[1:],
    }
    return environment


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
