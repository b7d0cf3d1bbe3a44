"""The `lakehouse` command line: one module per group of commands."""

import logging
import os
import sys
from io import TextIOWrapper
from pathlib import Path


def main() -> None:
    """Run the command of this process and exit with its code."""
    from lakehouse.cli.program import run

    # Without a handler, Python prints log records of libraries during an interrupt.
    logging.getLogger().addHandler(logging.NullHandler())
    _print_in_utf8()
    typed = Path(sys.argv[0])
    code = run(sys.argv[1:], program=typed.name if typed.is_absolute() else str(typed))
    _let_go_of_broken_pipe()
    sys.exit(code)


def _print_in_utf8() -> None:
    """Print unsupported characters as UTF-8 to pipes and as escapes to terminals."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding.lower() != "utf-8":
            if stream.isatty():
                stream.reconfigure(errors="backslashreplace")
            else:
                stream.reconfigure(encoding="utf-8")


def _let_go_of_broken_pipe() -> None:
    """Flush standard output; a closed pipe would cause an error message of Python at exit."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
