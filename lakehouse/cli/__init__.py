"""`lakehouse …`: a thin shell over the same functions that Dagster calls. One module for each group of commands."""

import logging
import sys
from pathlib import Path


def main() -> None:
    """Run the command that this process was started with, and exit with its code."""
    from lakehouse.cli.program import run

    # Without a handler, Python would print what libraries log in the middle of an interrupt.
    logging.getLogger().addHandler(logging.NullHandler())
    typed = Path(sys.argv[0])
    sys.exit(run(sys.argv[1:], program=typed.name if typed.is_absolute() else str(typed)))
