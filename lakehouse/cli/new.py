"""`lakehouse new`: declarations of your own, begun from files and tables that are there."""

import click

from lakehouse.cli.call_context import verbose_option
from lakehouse.cli.new_feed import feed
from lakehouse.cli.new_table import table


@click.group("new")
def new() -> None:
    """Begin a feed from its files, or a table from another one.

    What is written are plain Python files, to be read, corrected and kept; nothing that is
    there is overwritten.
    """


new.params.append(verbose_option())
for _command in (feed, table):
    new.add_command(_command)
