"""`lakehouse new`: declarations from existing files and tables."""

import click

from lakehouse.cli.call_context import verbose_option
from lakehouse.cli.new_feed import feed
from lakehouse.cli.new_table import table


@click.group("new")
def new() -> None:
    """Begin a feed from its files, or a table from another one.

    Writes plain Python files to read, correct and keep; existing files are not overwritten.
    """


new.params.append(verbose_option())
for _command in (feed, table):
    new.add_command(_command)
