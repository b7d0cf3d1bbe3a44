"""`lakehouse copy`: copies tables to another deployment without a JVM."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from lakehouse.cli.call_context import State, command, plain_name
from lakehouse.cli.output.printing import complain, conclude, count
from lakehouse.errors import TableBusy
from lakehouse.settings import Settings
from lakehouse.storage.byte_sizes import size_text

if TYPE_CHECKING:
    from lakehouse.iceberg.copy.copy_table import TableCopy
    from lakehouse.recovery.copy_tables import CopyPlan


@command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.argument("names", metavar="[TABLE]...", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Show what would be copied, and copy nothing.")
def copy(state: State, source: str, target: str, names: tuple[str, ...], dry_run: bool) -> None:
    """Copy tables from one deployment to another.

    FROM and TO are folders of homes; one of them can be a bucket (s3://NAME) with the Glue catalog
    of the account in the environment. All or the named tables are copied in a consistent state,
    with snapshots, tags, branches and the records of erased people. A copied table becomes
    visible after its row count and checksum are verified (for Avro: those of its files). Tables
    that exist with different rows are rejected; tables that only Spark can read are skipped and
    named. After Ctrl-C or a kill, run the same command again to continue. FROM is not changed.
    """
    from lakehouse.recovery.copy_erasure_records import check_suppression
    from lakehouse.recovery.copy_tables import plan_copy

    settings = state.settings
    places = settings.at(source), settings.at(target)
    with _erasure_lock(places[0]):
        with state.progress("Looking into the tables of both places"):
            plan = plan_copy(*places, list(map(plain_name, names)))
            check_suppression(*places)
        for table in plan.tables:
            if table.there:
                click.echo(f"{table.name} {table.there}.")
        if dry_run:
            for table in plan.left:
                click.echo(f"{table.name} would be copied.")
        else:
            _copy(state, plan)
    for name in plan.outside_bucket:
        complain(f"{name} is outside of the bucket, and is copied only by name.")
    skipped = [f"{name} is not copied: {why}" for name, why in plan.unsupported.items()]
    conclude((), skipped, success=not skipped)


@contextmanager
def _erasure_lock(settings: Settings) -> Iterator[None]:
    """Take the erasure lock: rows erased during the copy would be unknown at the target."""
    from lakehouse.privacy.folder import erase_lock
    from lakehouse.storage.file_lock import file_lock

    lock = erase_lock(settings)
    if not lock.parent.is_dir():
        # Do not create anything at the source; erased people are checked again later.
        yield
        return
    busy = TableBusy(
        f"People are being erased from {settings.home}; expected none meanwhile.",
        next_step="Wait until `lakehouse erasures` shows that it has ended, and copy then.",
    )
    with file_lock(lock, 0, busy):
        yield


def _copy(state: State, plan: "CopyPlan") -> None:
    from lakehouse.privacy.folder import privacy_folder
    from lakehouse.recovery.copy_erasure_records import check_suppression

    if plan.source.home == plan.target.home:
        _copy_tables(state, plan)
        return
    privacy_folder(plan.target)
    with _erasure_lock(plan.target):
        # Check again: an erasure may have finished in the meantime.
        check_suppression(plan.source, plan.target)
        _copy_tables(state, plan)


def _copy_tables(state: State, plan: "CopyPlan") -> None:
    from lakehouse.iceberg.catalog.catalog import Catalog
    from lakehouse.recovery.copy_erasure_records import copy_erasure_records, count_new_erasures
    from lakehouse.recovery.copy_tables import copy_planned, place_text

    new = count_new_erasures(plan.source, plan.target)
    if new and Catalog.of(plan.target).tables():
        complain(
            f"{count(new, 'person')} erased from {place_text(plan.source)} were not known at"
            f" {place_text(plan.target)}: tables that it had before may hold rows of theirs, which"
            " `lakehouse erase` takes away there."
        )
    # First, so that rows of erased people are recognized at the target.
    for name in copy_erasure_records(plan.source, plan.target):
        click.echo(f"{name} copied.")
    with state.progress(f"Copying {count(len(plan.left), 'table')}") as update:
        for done in copy_planned(plan, lambda table, text: update(f"{table}: {text}")):
            click.echo(_line(done))
    click.echo(f"{place_text(plan.target)} has {count(len(plan.tables), 'table')} of these.")


def _line(done: "TableCopy") -> str:
    compared = "rows" if done.verified_by == "rows" else "files"
    return (
        f"{done.table} copied: {count(done.rows, 'row')}, {count(done.snapshots, 'snapshot')},"
        f" {count(done.files, 'file')}, {size_text(done.size_bytes)}; {compared} compared, checksum"
        f" {done.checksum}."
    )
