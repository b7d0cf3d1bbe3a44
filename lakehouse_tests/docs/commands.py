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

Look up the arguments and options of each command, as `lakehouse COMMAND --help` shows them.
Every command also accepts `--help` and `--verbose`, which shows the traceback of an error.
`{COMMAND}` generates this page, and a test fails if it is out of date.
"""


def page() -> str:
    """Return the page as the commands are now."""
    context = click.Context(lakehouse, info_name="lakehouse")
    return "\n".join([_HEAD, *_index(lakehouse), "", *_sections(lakehouse, context)])


def _index(group: click.Group) -> Iterator[str]:
    yield "| command | |"
    yield "|---|---|"
    for name, command in group.commands.items():
        summary = _paragraphs(command.help or "").split("\n\n")[0]
        yield f"| [`lakehouse {name}`](#lakehouse-{name}) | {_cell(summary)} |"


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
