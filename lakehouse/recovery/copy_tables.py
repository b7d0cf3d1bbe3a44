"""Copy tables between deployments: all in a consistent state, each completely or not at all."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from lakehouse.errors import LakehouseError, TableBusy, TypeUnsupported, UsageError
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.branch import is_audit
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.copy.copy_table import TableCopy, copy_table, main_checksum
from lakehouse.iceberg.metadata.table_locations import folder_key, path_key
from lakehouse.recovery.copy_erasure_records import (
    check_no_new_erasures,
    check_records_of_erasures,
)
from lakehouse.settings import Settings
from lakehouse.tables.quoting import meant_name

if TYPE_CHECKING:
    from pyiceberg.table import Table

_ATTEMPTS = 20
"""How often all tables are checked for a consistent state."""
_WAIT_SECONDS = 600.0
"""How long to wait for another process that creates a table of the same name at the target."""


@dataclass(frozen=True)
class PlannedTable:
    """A table to copy, pinned: later commits are not copied."""

    name: str
    source: "Table"
    there: str = ""
    """Why it is not copied: its state at the target; empty if it is not there."""


@dataclass(frozen=True)
class CopyPlan:
    """The tables to copy between two deployments."""

    source: Settings
    target: Settings
    tables: Sequence[PlannedTable]
    outside_bucket: Sequence[str] = ()
    """Tables of the same Glue catalog outside of the deployment's bucket."""
    unsupported: Mapping[str, str] = field(default_factory=dict)
    """Tables that are left out, with the reason: only Spark can read their column types."""

    @property
    def left(self) -> list[PlannedTable]:
        """The tables that still must be copied."""
        return [table for table in self.tables if not table.there]


def plan_copy(source: Settings, target: Settings, names: Sequence[str] = ()) -> CopyPlan:
    """Plan which tables are copied, pinned in a consistent state, so that references between
    them hold at the target.

    :param names: the tables; default: all tables of the source.
    :raises UsageError: if the source does not exist, equals the target, or lacks a table.
    :raises LakehouseError: if the target has tables with other rows, or the erasure records of
        a bucket are missing.
    :raises TypeUnsupported: if only Spark can read a requested table.
    :raises TableBusy: if no consistent state was found, since tables are written continuously.
    """
    _check_places(source, target)
    catalog = Catalog.of(source)
    check_records_of_erasures(source, catalog)
    outside_bucket: list[str] = []
    if names:
        _require_known(source, catalog, names)
        pinned = _pinned(catalog, sorted(dict.fromkeys(names)), by_name=True)
    elif source.deployment == "aws":
        pinned, outside_bucket = _pinned_in_bucket(source, catalog)
    else:
        pinned = _pinned(catalog, catalog.tables())
    compared = _compared(pinned.tables, target)
    return CopyPlan(source, target, compared, outside_bucket, pinned.unsupported)


def copy_planned(plan: CopyPlan, report: Callable[[str, str], None]) -> Iterator[TableCopy]:
    """Copy the planned tables that the target lacks, one after the other.

    :param report: receives the table and its progress.
    :raises LakehouseError: from `copy_table`, or if data subjects were erased from the source
        in the meantime.
    """
    engine = _engine(plan.target)
    check = partial(check_no_new_erasures, plan.source, plan.target)
    for table in plan.left:
        with table_lock(engine, table.name, _WAIT_SECONDS):
            report_progress = partial(report, table.name)
            yield copy_table(table.source, table.name, engine.catalog, report_progress, check)


def place_text(settings: Settings) -> str:
    """Return the name of a deployment as an argument of `lakehouse copy`."""
    return f"s3://{settings.bucket}" if settings.deployment == "aws" else str(settings.home)


def _check_places(source: Settings, target: Settings) -> None:
    if source.deployment == target.deployment == "aws":
        raise UsageError(
            f"{place_text(source)} and {place_text(target)} are in one Glue catalog, in which a"
            " table has one place; expected a home on one side.",
            next_step="Copy to a home, and from there with the credentials of the other account.",
        )
    if source.deployment == target.deployment and source.home == target.home:
        raise UsageError(f"{source.home} would be copied to itself; expected two places.")
    if source.deployment == "local" and not (source.home / "catalog.db").is_file():
        raise UsageError(
            f"There is no lakehouse at {source.home}: no catalog.db is in it.",
            next_step="Give the folder in LAKEHOUSE_HOME, or s3:// and a bucket.",
        )


def _require_known(source: Settings, catalog: Catalog, names: Sequence[str]) -> None:
    known = catalog.tables(names)
    for name in names:
        if name not in known:
            raise UsageError(
                f"There is no table {name!r} at {place_text(source)}; {meant_name(name, known)}"
            )


class _Pinned(NamedTuple):
    """Tables pinned in a consistent state, and why others are left out."""

    tables: "dict[str, Table]"
    unsupported: dict[str, str]


def _pinned_in_bucket(source: Settings, catalog: Catalog) -> tuple[_Pinned, list[str]]:
    """Load the tables of a bucket; return the names of those of the account's other buckets."""
    folder = folder_key(source.warehouse)
    places = catalog.metadata_locations()
    inside = [name for name, place in places.items() if path_key(place).startswith(folder)]
    loaded = _pinned(catalog, sorted(inside))
    pinned = {
        name: table
        for name, table in loaded.tables.items()
        if path_key(table.location()).startswith(folder)
    }
    outside_bucket = set(places) - {*pinned, *loaded.unsupported}
    return loaded._replace(tables=pinned), sorted(outside_bucket)


def _engine(settings: Settings) -> Engine:
    """Return an engine without Spark that creates no masking key."""
    return Engine(Catalog.of(settings), _no_spark, settings.lock_dir, masking_key=b"")


def _no_spark() -> NoReturn:
    raise AssertionError("Tables are copied without Spark.")


def _pinned(catalog: Catalog, names: Sequence[str], *, by_name: bool = False) -> _Pinned:
    """Load tables in a consistent state, without blocking writers.

    Tables that only Spark can read are left out, unless they are requested by name.
    """
    for _ in range(_ATTEMPTS):
        places = catalog.metadata_locations(names)
        pinned = _Pinned({}, {})
        for name in names:
            try:
                pinned.tables[name] = catalog.load(name)
            except TypeUnsupported as error:
                if by_name:
                    raise
                pinned.unsupported[name] = str(error)
        changed = [
            name
            for name, table in pinned.tables.items()
            if table.metadata_location != places.get(name)
        ]
        if not changed:
            return pinned
    raise TableBusy(
        f"Tables were written during each of {_ATTEMPTS} attempts to pin all of them, last"
        f" {', '.join(changed)}; expected a time without writes.",
        next_step="Stop `lakehouse dev` and what else writes, or name fewer tables.",
    )


def _compared(pinned: "dict[str, Table]", target: Settings) -> list[PlannedTable]:
    if target.deployment == "local" and not any(target.home.glob("*")):
        # Opening the catalog would create it.
        return [PlannedTable(name, source) for name, source in pinned.items()]
    catalog = Catalog.of(target)
    known = set(catalog.tables(pinned))
    tables, unequal = [], []
    for name, source in pinned.items():
        there = _there(source, catalog.load(name)) if name in known else ""
        if there is None:
            unequal.append(name)
        else:
            tables.append(PlannedTable(name, source, there))
    if unequal:
        raise LakehouseError(
            f"{place_text(target)} has {', '.join(unequal)} with other rows; expected none, or the"
            " same rows. Nothing was copied.",
            next_step=(
                "Name the tables that are to be copied, or drop these there"
                " (`lakehouse sql --write 'DROP TABLE …'` on that deployment, or `drop_table` of"
                " PyIceberg for a quarantine)."
            ),
        )
    return tables


def _there(source: "Table", found: "Table") -> str | None:
    """Describe the target's state of a table; None if it has other rows."""
    is_copy = found.metadata.table_uuid == source.metadata.table_uuid
    if is_copy and _refs(found) == _refs(source):
        return "is there already"
    if main_checksum(found) == main_checksum(source):
        return "is there with the same rows, and other snapshots"
    return None


def _refs(table: "Table") -> dict[str, int]:
    refs = table.metadata.refs.items()
    return {name: ref.snapshot_id for name, ref in refs if not is_audit(name)}
