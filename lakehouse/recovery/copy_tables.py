"""Tables from one deployment to another: which, as they all were at one moment, and each as a whole
or not at all.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from lakehouse.errors import LakehouseError, TableBusy, TypeUnsupported, UsageError
from lakehouse.iceberg.commit.branch import is_audit
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.copy.copy_table import TableCopy, copy_table, main_checksum
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.location_files import folder_key, path_key
from lakehouse.recovery.copy_home import check_nobody_went, check_records_of_erasures
from lakehouse.settings import Settings
from lakehouse.storage.s3 import open_bucket
from lakehouse.tables.suggestions import meant_name

if TYPE_CHECKING:
    from pyiceberg.table import Table

_LOOKS = 20
"""How often all tables are looked at for a moment in which none is written."""
_WAIT_SECONDS = 600.0
"""How long is waited for who makes a table of the same name at the other place."""


@dataclass(frozen=True)
class PlannedTable:
    """A table as it is copied: what another process commits to it later is left out."""

    name: str
    source: "Table"
    there: str = ""
    """Why it is not copied: what the other place has of it; empty where nothing."""


@dataclass(frozen=True)
class CopyPlan:
    """What is copied from one deployment to another."""

    source: Settings
    target: Settings
    tables: Sequence[PlannedTable]
    elsewhere: Sequence[str] = ()
    """Tables of the same Glue catalog that lie in no folder of the deployment's bucket."""
    unsupported: Mapping[str, str] = field(default_factory=dict)
    """Tables that are left out, with why: only Spark reads the types of their columns."""
    views: Sequence[str] = ()
    """Views beside the tables, which stay."""

    @property
    def left(self) -> list[PlannedTable]:
        """The tables that are to be copied."""
        return [table for table in self.tables if not table.there]


def plan_copy(source: Settings, target: Settings, names: Sequence[str] = ()) -> CopyPlan:
    """Say which tables are copied, and take the state of all of them at one moment, so that what
    they say of one another holds at the other place.

    :param names: all tables of the source where there are none.
    :raises UsageError: when there is nothing to copy from, both are the same, or a table is not
        there.
    :raises LakehouseError: names the tables that the target has with other rows; or when the
        records of erasures from a bucket are not there.
    :raises TypeUnsupported: when only Spark reads a table that is named.
    :raises TableBusy: when there is no such moment, since tables are written again and again.
    """
    _check_places(source, target)
    catalog = Catalog.of(source)
    check_records_of_erasures(source, catalog)
    elsewhere: list[str] = []
    if names:
        _require_known(source, catalog, names)
        pinned = _pinned(catalog, sorted(dict.fromkeys(names)), asked_by_name=True)
    elif source.deployment == "aws":
        pinned, elsewhere = _pinned_in_bucket(source, catalog)
    else:
        pinned = _pinned(catalog, catalog.tables())
    compared = _compared(pinned.tables, target)
    views = () if names else catalog.views()
    return CopyPlan(source, target, compared, elsewhere, pinned.unsupported, views)


def copy_planned(plan: CopyPlan, report: Callable[[str, str], None]) -> Iterator[TableCopy]:
    """Copy the tables of a plan that the target has not, one after the other.

    :param report: is told the table, and in how far it is copied.
    :raises LakehouseError: as `copy_table` does, and when people were erased from the source
        meanwhile.
    """
    engine = _engine(plan.target)
    bucket = open_bucket(plan.target) if plan.target.deployment == "aws" else None
    check = partial(check_nobody_went, plan.source, plan.target)
    for table in plan.left:
        with table_lock(engine, table.name, _WAIT_SECONDS):
            told = partial(report, table.name)
            yield copy_table(
                table.source, table.name, engine.catalog, told, check, bucket=bucket
            )


def place_text(settings: Settings) -> str:
    """Return which deployment settings are of, as `lakehouse copy` is told it."""
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
            next_step="Say the folder that LAKEHOUSE_HOME names, or s3:// and a bucket.",
        )


def _require_known(source: Settings, catalog: Catalog, names: Sequence[str]) -> None:
    known = catalog.tables(names)
    for name in names:
        if name not in known:
            raise UsageError(
                f"There is no table {name!r} at {place_text(source)}; {meant_name(name, known)}"
            )


class _Pinned(NamedTuple):
    """Tables as they all were at one moment, and why others are left out."""

    tables: "dict[str, Table]"
    unsupported: dict[str, str]


def _pinned_in_bucket(source: Settings, catalog: Catalog) -> tuple[_Pinned, list[str]]:
    """Load the tables of a bucket; return the names of the others too. An account has one catalog
    for all of its buckets, and those of others are not opened.
    """
    folder = folder_key(source.warehouse)
    places = catalog.metadata_locations()
    inside = [name for name, place in places.items() if path_key(place).startswith(folder)]
    loaded = _pinned(catalog, sorted(inside))
    pinned = {
        name: table
        for name, table in loaded.tables.items()
        if path_key(table.location()).startswith(folder)
    }
    elsewhere = set(places) - {*pinned, *loaded.unsupported}
    return loaded._replace(tables=pinned), sorted(elsewhere)


def _engine(settings: Settings) -> Engine:
    """Return the engine of a deployment for what needs no Spark, which makes no key in it."""
    return Engine(Catalog.of(settings), _no_spark, settings.lock_dir, masking_key=b"")


def _no_spark() -> NoReturn:
    raise AssertionError("Tables are copied without Spark.")


def _pinned(catalog: Catalog, names: Sequence[str], *, asked_by_name: bool = False) -> _Pinned:
    """Load tables as they all were at one moment: none was committed to between a look at where
    the metadata of all is, and its load. Nobody waits for that.

    One that only Spark reads is left out, unless somebody asks for it by name.
    """
    for _ in range(_LOOKS):
        places = catalog.metadata_locations(names)
        pinned = _Pinned({}, {})
        for name in names:
            try:
                pinned.tables[name] = catalog.load(name)
            except TypeUnsupported as error:
                if asked_by_name:
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
        f"Between {_LOOKS} looks at all tables some were written each time, last"
        f" {', '.join(changed)}; expected a moment without.",
        next_step="Stop `lakehouse dev` and what else writes, or name fewer tables.",
    )


def _compared(pinned: "dict[str, Table]", target: Settings) -> list[PlannedTable]:
    if target.deployment == "local" and not target.home.exists():
        # A look at its catalog would make it.
        return [PlannedTable(name, source) for name, source in pinned.items()]
    catalog = Catalog.of(target)
    known = set(catalog.tables(pinned))
    tables, refused = [], []
    for name, source in pinned.items():
        there = _there(source, catalog.load(name)) if name in known else ""
        if there is None:
            refused.append(name)
        else:
            tables.append(PlannedTable(name, source, there))
    if refused:
        raise LakehouseError(
            f"{place_text(target)} has {', '.join(refused)} with other rows; expected none, or the"
            " same rows. Nothing was copied.",
            next_step=(
                "Name the tables that are to be copied, or drop these there"
                " (`lakehouse sql --write 'DROP TABLE …'` on that deployment)."
            ),
        )
    return tables


def _there(source: "Table", found: "Table") -> str | None:
    """Say what the target has of a table; None where it has other rows."""
    is_copy = found.metadata.table_uuid == source.metadata.table_uuid
    if is_copy and _refs(found) == _refs(source):
        return "is there already"
    if main_checksum(found) == main_checksum(source):
        known = _refs(found)
        lacking = [name for name in _refs(source) if is_copy and name not in known]
        if lacking:
            return f"is there with the same rows, and without {', '.join(sorted(lacking))}"
        return "is there with the same rows, and a history of its own"
    return None


def _refs(table: "Table") -> dict[str, int]:
    refs = table.metadata.refs.items()
    return {name: ref.snapshot_id for name, ref in refs if not is_audit(name)}
