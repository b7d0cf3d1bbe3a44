"""The commands, as their own help tells them.

Run as `python -m lakehouse_tests.docs.commands`, it writes docs/commands.md.
"""

import inspect
from collections.abc import Iterator

import click

from lakehouse.cli.program import lakehouse
from lakehouse_tests.docs.markdown import ROOT

PAGE = ROOT / "docs" / "commands.md"
COMMAND = "make reference"
_OF_ALL = {"--help", "--verbose"}
_HEAD = f"""# Commands

Each command with its arguments and options, as `lakehouse COMMAND --help` shows them; `{COMMAND}` writes this page, and a test fails where it is older.
What each of them is for stands in [the README](../README.md#commands); every one has `--help` and `--verbose` too.
"""


def page() -> str:
    """Return the page as the commands are now."""
    return f"{_HEAD}\n" + "\n".join(
        _sections(lakehouse, click.Context(lakehouse, info_name="lakehouse"))
    )


def _sections(command: click.Command, context: click.Context) -> Iterator[str]:
    yield _section(command, context)
    if isinstance(command, click.Group):
        for name, part in command.commands.items():
            yield from _sections(part, click.Context(part, parent=context, info_name=name))


def _section(command: click.Command, context: click.Context) -> str:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    told = [f"## {context.command_path}", "", f"`{usage}`", "", _paragraphs(command.help or "")]
    options = [
        record
        for parameter in command.get_params(context)
        if (record := parameter.get_help_record(context)) and record[1]
        if not _OF_ALL & set(parameter.opts)
    ]
    if options:
        told += ["", "| option | |", "|---|---|"]
        told += [f"| `{_cell(name)}` | {_cell(text)} |" for name, text in options]
    return "\n".join([*told, ""])


def _paragraphs(text: str) -> str:
    # Lines that click is not to wrap come after a line with \b.
    parts = inspect.cleandoc(text).replace("\b\n", "").split("\n\n")
    return "\n\n".join(" ".join(part.split()) for part in parts)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
