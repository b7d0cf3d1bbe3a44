"""Searches for erased people: calls the verifier with all files, columns and values."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lakehouse.errors import LakehouseError, TableNotFound, TableUnreadable
from lakehouse.iceberg.catalog.damaged_metadata import explain_table
from lakehouse.iceberg.metadata.referenced_files import outermost, table_folders
from lakehouse.iceberg.metadata.table_locations import is_in_a_bucket, path_key
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.erasure_record import ErasureRecord, read_record
from lakehouse.privacy.folder import hmac_key
from lakehouse.privacy.holders import Holder, Subject
from lakehouse.privacy.identity import Named
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.privacy.requests import read_request
from lakehouse.privacy.table_values import remaining_values
from lakehouse.privacy.verifier.columns import HeldColumns
from lakehouse.privacy.verifier.report import NotProved, Report
from lakehouse.privacy.verifier.roots import BucketRoot, FolderRoot, Root
from lakehouse.privacy.verifier.search import by_hmacs, by_values, verify
from lakehouse.settings import Settings
from lakehouse.tables.column import Column
from lakehouse.tables.person import Person, names_of, normal_id

Folders = Mapping[str, Sequence[str]]
"""The folders with files of each table."""


def folders_of_holders(erasable: Erasable, known: Folders) -> dict[str, Sequence[str]]:
    """Return the folders of each table that can contain people.

    :param known: folders from earlier calls, when metadata still referenced files there.
    """
    catalog, folders = erasable.engine.catalog, dict[str, Sequence[str]]()
    for table in sorted({holder.table for one in erasable.subjects for holder in one.holders}):
        now: list[str] = []
        if catalog.has(table):
            with explain_table(table):
                now = table_folders(catalog.load(table))
        folders[table] = outermost([*now, *known.get(table, ())])
    return folders


def searched_roots(erasable: Erasable, folders: Folders) -> Iterator[Root]:
    """Yield all folders and buckets in which a person is searched.

    :param folders: of tables that can contain people.
    """
    settings = erasable.settings
    outer = outermost(folder for of_table in folders.values() for folder in of_table)
    yield FolderRoot(settings.home)
    if settings.deployment == "aws":
        from lakehouse.storage.s3 import open_bucket

        store = open_bucket(settings)
        yield BucketRoot(store.client, store.bucket)
        for folder in filter(is_in_a_bucket, outer):
            bucket, _, key = path_key(folder).rstrip("/").partition("/")
            if bucket != store.bucket:
                yield BucketRoot(store.client, bucket, below=f"{key}/" if key else "")
    for folder in outer:
        path = Path(path_key(folder))
        if is_in_a_bucket(folder) or path.is_relative_to(settings.home):
            continue
        if path.is_dir():
            yield FolderRoot(Path("/"), below=path.relative_to("/").as_posix())


def folders_below_roots(settings: Settings, table: str, folders: Iterable[str]) -> list[str]:
    """Return the folders of a table relative to their root, and its default folders: a dropped
    table has files too.
    """
    namespace, _, name = table.partition(".")
    below = [f"warehouse/{namespace}/{name}", f"warehouse/{namespace}.db/{name}"]
    for folder in folders:
        key = path_key(folder)
        if is_in_a_bucket(folder):
            below.append(key.partition("/")[2])
        else:
            path = Path(key)
            root = settings.home if path.is_relative_to(settings.home) else Path("/")
            below.append(path.relative_to(root).as_posix())
    return below


_FEED_FOLDERS = ("inbox", "archive", "rejected", "staging")


def search_persons(
    erasable: Erasable, persons: Sequence[Person], record: ErasureRecord | None = None
) -> Report:
    """Search everything for some people, by their values.

    :param record: of their request, with former folders and places that others handle.
    """
    record = record or ErasureRecord()
    folders = folders_of_holders(erasable, record.folders)
    columns = held_columns(erasable, folders)
    remaining = remaining_values(erasable.engine, erasable.subjects, persons)
    state = by_values(persons, columns, remaining)
    report = verify(list(searched_roots(erasable, folders)), state)
    return _with_unread(erasable, report, record)


def search_again(erasable: Erasable, request_id: str, named: Sequence[Named] = ()) -> Report:
    """Search for the people of a request again: by the given values, else by the stored hashes.

    :raises UsageError: if there is no such request.
    :raises LakehouseError: if a name is no column about people.
    """
    request = read_request(erasable.settings, request_id)
    record = read_record(erasable.settings, request_id)
    if named:
        return search_persons(erasable, [_person(erasable, one) for one in named], record)
    hmacs = [*record.hmacs, *record.personal_hmacs, *(one.hmac for one in request.people)]
    folders = folders_of_holders(erasable, record.folders)
    key = hmac_key(erasable.settings, is_needed=True)
    state = by_hmacs(key, list(dict.fromkeys(hmacs)), held_columns(erasable, folders))
    report = verify(list(searched_roots(erasable, folders)), state)
    return _with_unread(erasable, report, record)


def _with_unread(erasable: Erasable, report: Report, record: ErasureRecord) -> Report:
    """Add the tables that cannot be searched; those that someone has to handle do not block."""
    known = {place.place for place in record.external_places}
    gaps = [
        NotProved(
            place.place, "not looked into", place.why, is_blocking=place.place not in known
        )
        for place in unread_tables(erasable)
    ]
    return replace(report, not_proved=(*report.not_proved, *gaps))


def unread_tables(erasable: Erasable) -> Iterator[ScrubbedPlace]:
    """Yield the tables that cannot be searched, such as those with types that only Spark reads;
    their owner has to.
    """
    catalog = erasable.engine.catalog.within(erasable.tables).with_cached_locations()
    for name in sorted(catalog.metadata_locations()):
        try:
            catalog.load(name)
        except TableNotFound:
            # It was dropped meanwhile.
            continue
        except TableUnreadable as error:
            why = f"It was not searched: {error.args[0]}"
            yield ScrubbedPlace(f"the table {name}", "not reached", why=why)


def held_columns(erasable: Erasable, folders: Folders) -> list[HeldColumns]:
    """Return the columns with people of all tables and feeds."""
    columns = []
    for subject in erasable.subjects:
        for holder in subject.holders:
            held = _held_columns(subject, holder)
            columns.append(
                replace(
                    held,
                    folders=folders_below_roots(
                        erasable.settings, holder.table, folders[holder.table]
                    ),
                    fields=_field_names(erasable, holder),
                )
            )
            for feed in erasable.feeds.values():
                if feed.table == holder.table:
                    of_feed = [f"{folder}/{feed.name}" for folder in _FEED_FOLDERS]
                    columns.append(replace(held, folders=of_feed))
    return columns


def _field_names(erasable: Erasable, holder: Holder) -> dict[int, str]:
    """Return the names of the columns in all schemas of a table, by field id."""
    if not erasable.engine.catalog.has(holder.table):
        return {}
    names = frozenset().union(*map(names_of, holder.columns))
    return {
        field.field_id: field.name
        for schema in erasable.engine.catalog.load(holder.table).schemas().values()
        for field in schema.fields
        if field.name.lower() in names
    }


def _held_columns(subject: Subject, holder: Holder) -> HeldColumns:
    ids = frozenset[str]().union(*map(_names_in_files, holder.ids))
    personal: dict[str, frozenset[str]] = {}
    for column in holder.personal:
        # A value is a person's under each name of its column in any table.
        for name in subject.personal_names(column.name):
            personal[name] = personal.get(name, frozenset()) | _names_in_files(column)
    subjects = dict.fromkeys({subject.name, *subject.names}, ids) if ids else {}
    return HeldColumns((), subjects, personal)


def _names_in_files(column: Column) -> frozenset[str]:
    """Return the names of a column, including those that Iceberg escapes in files."""
    from pyiceberg.schema import make_compatible_name

    return names_of(column).union(map(make_compatible_name, names_of(column)))


def _person(erasable: Erasable, named: Named) -> Person:
    name, values = named.column.lower(), frozenset({named.value, normal_id(named.value)})
    for subject in erasable.subjects:
        if name in subject.names:
            personal = dict.fromkeys(sorted(subject.personal_names(name)), values)
            return Person(subject.name, values, personal)
    for subject in erasable.subjects:
        if names := subject.personal_names(name):
            return Person(subject.name, frozenset(), dict.fromkeys(sorted(names), values))
    raise LakehouseError(
        f"{named.column} is neither a subject nor a personal column of any table; expected one"
        " that a table declares."
    )
