"""`lakehouse …`: a thin shell over the same functions that Dagster calls. One module for each
group of commands.
"""

import logging
import os
import sys
from io import TextIOWrapper
from pathlib import Path


def main() -> None:
    """Run the command that this process was started with, and exit with its code."""
    from lakehouse.cli.program import run

    # Without a handler, Python would print what libraries log in the middle of an interrupt.
    logging.getLogger().addHandler(logging.NullHandler())
    _print_in_utf8()
    typed = Path(sys.argv[0])
    code = run(sys.argv[1:], program=typed.name if typed.is_absolute() else str(typed))
    _let_go_of_broken_pipe()
    sys.exit(code)


def _print_in_utf8() -> None:
    """Print what the locale cannot: as UTF-8 to other programs, as escapes to a terminal."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding.lower() != "utf-8":
            if stream.isatty():
                stream.reconfigure(errors="backslashreplace")
            else:
                stream.reconfigure(encoding="utf-8")


def _let_go_of_broken_pipe() -> None:
    """Write what is left; where nobody reads it, Python would complain at its end."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
