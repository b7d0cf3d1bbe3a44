"""`lakehouse generate`: generates sample files and the expected table contents."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.printing import count
from lakehouse.errors import LakehouseError, UsageError


def _folder(_: click.Context, __: click.Parameter, folder: str) -> Path:
    if not folder.strip():
        raise UsageError(
            "--out is empty, which would be the working directory; expected a folder."
        )
    return Path(folder)


@command("generate")
@click.argument("_what", metavar="bnpl", type=click.Choice(["bnpl"]))
@click.option(
    "--out",
    required=True,
    callback=_folder,
    metavar="DIR",
    help="Folder to write to; created if missing.",
)
@click.option(
    "--start",
    required=True,
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="First day.",
)
@click.option("--days", default=30, show_default=True, help="Number of days, one file each.")
@click.option(
    "--rows-per-day", default=1000, show_default=True, help="Rows of a file, on average."
)
@click.option("--seed", default=1, show_default=True, help="Another seed makes other rows.")
@click.option("--gzip", is_flag=True, help="Write .csv.gz.")
def generate(
    state: State,
    _what: str,
    out: Path,
    start: datetime,
    days: int,
    rows_per_day: int,
    seed: int,
    gzip: bool,
) -> None:
    """Write files of transactions.

    Writes one CSV file per day with known defects, and truth.json with the expected contents of
    the tables. Files depend only on the arguments, and are overwritten by the same
    arguments; folders with other files are rejected.
    """
    from lakehouse.sample_data.bnpl.generate import generate as write_files

    with state.progress("Generating transactions"), _explained(out):
        generated = write_files(out, start.date(), days, rows_per_day, seed, gzip=gzip)
    totals = generated.truth.totals
    click.echo(
        f"{count(len(generated.files), 'file')} with {count(totals['bronze'], 'row')} in {out}/"
    )
    fates = ", ".join(
        f"{totals[fate]:,} {fate}" for fate in ("clean", "superseded", "quarantined")
    )
    click.echo(
        f"{generated.truth_file}: {fates}, {count(generated.truth.customers, 'customer')}"
    )


@contextmanager
def _explained(out: Path) -> Iterator[None]:
    """Name the wrong argument or the folder in errors."""
    from lakehouse.sample_data.bnpl.arguments import BadArguments
    from lakehouse.sample_data.bnpl.folder import FolderTaken

    try:
        yield
    except BadArguments as error:
        raise UsageError(f"--{error}") from error
    except FolderTaken as error:
        raise UsageError(str(error), next_step="Give another --out, or empty it.") from error
    except OSError as error:
        raise LakehouseError(
            f"{error.filename or out} could not be written: {error.strerror or error}.",
            next_step="Give a folder with --out that can be written to, and has room.",
        ) from error
