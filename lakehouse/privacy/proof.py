"""What the verifier is given: all that a deployment keeps, and who should be gone."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lakehouse.errors import LakehouseError
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.erased_people import remaining_values
from lakehouse.privacy.erasure_record import ErasureRecord, read_record
from lakehouse.privacy.hmac_key import hmac_key
from lakehouse.privacy.holders import Holder, Subject
from lakehouse.privacy.identity import Named
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.privacy.requests import read_request
from lakehouse.privacy.searched_roots import (
    Folders,
    folders_below_roots,
    folders_of_holders,
    searched_roots,
)
from lakehouse.privacy.unread_tables import gaps_of_unread
from lakehouse.privacy.verifier.columns import HeldColumns
from lakehouse.privacy.verifier.report import Report
from lakehouse.privacy.verifier.search import verify, verify_by_hmac
from lakehouse.tables.column import Column
from lakehouse.tables.people import names_of
from lakehouse.tables.person import Person, normal_id

_FEED_FOLDERS = ("inbox", "archive", "rejected", "staging")


def prove(
    erasable: Erasable, persons: Sequence[Person], record: ErasureRecord | None = None
) -> Report:
    """Search everything for some people, by their values.

    :param record: of their request: where tables had files, and what others were told to see to.
    """
    record = record or ErasureRecord()
    folders = folders_of_holders(erasable, record.folders)
    report = verify(
        list(searched_roots(erasable, folders)),
        persons,
        held_columns(erasable, folders),
        remaining_values(erasable, persons),
    )
    return _with_unread(erasable, report, record.elsewhere)


def prove_again(erasable: Erasable, request_id: str, named: Sequence[Named] = ()) -> Report:
    """Search for the people of a request once more: by the values that are given, else by the
    hashes that are kept.

    :raises UsageError: when there is no such request.
    :raises LakehouseError: when nothing that was named is known of it.
    """
    request = read_request(erasable.settings, request_id)
    record = read_record(erasable.settings, request_id)
    if named:
        return prove(erasable, [_person(erasable, one) for one in named], record)
    hmacs = [*record.hmacs, *record.personal_hmacs, *(one.hmac for one in request.people)]
    folders = folders_of_holders(erasable, record.folders)
    report = verify_by_hmac(
        list(searched_roots(erasable, folders)),
        hmac_key(erasable.settings, is_needed=True),
        list(dict.fromkeys(hmacs)),
        held_columns(erasable, folders),
    )
    return _with_unread(erasable, report, record.elsewhere)


def _with_unread(erasable: Erasable, report: Report, said: Iterable[ScrubbedPlace]) -> Report:
    """Return a report that tells of the tables that no search looks through."""
    gaps = gaps_of_unread(erasable, said)
    return replace(report, not_proved=(*report.not_proved, *gaps))


def held_columns(erasable: Erasable, folders: Folders) -> list[HeldColumns]:
    """Return the columns of all tables and feeds that have people in them."""
    columns = []
    for subject in erasable.subjects:
        for holder in subject.holders:
            of_table = folders_below_roots(
                erasable.settings, holder.table, folders[holder.table]
            )
            held = _held(subject, holder)
            columns.append(_in_data_files(erasable, holder, replace(held, folders=of_table)))
            for feed in erasable.feeds.values():
                if feed.table == holder.table:
                    of_feed = [f"{folder}/{feed.name}" for folder in _FEED_FOLDERS]
                    columns.append(replace(held, folders=of_feed))
    return columns


def _in_data_files(erasable: Erasable, holder: Holder, held: HeldColumns) -> HeldColumns:
    """Return the columns with their field ids in all schemas of the table."""
    if not erasable.engine.catalog.has(holder.table):
        return held
    loaded = erasable.engine.catalog.load(holder.table)
    names = frozenset().union(*map(names_of, holder.columns))
    fields = {}
    for schema in loaded.schemas().values():
        for field in schema.fields:
            if field.name.lower() in names:
                fields[field.field_id] = field.name
    return replace(held, fields=fields)


def _held(subject: Subject, holder: Holder) -> HeldColumns:
    ids: set[str] = set()
    for column in holder.ids:
        ids |= _names_in_files(column)
    personal: dict[str, frozenset[str]] = {}
    for column in holder.personal:
        # A value is a person's under each name that anything calls it.
        for name in subject.personal_names(column.name):
            personal[name] = personal.get(name, frozenset()) | _names_in_files(column)
    subjects = dict.fromkeys({subject.name, *subject.names}, frozenset(ids)) if ids else {}
    return HeldColumns((), subjects, personal)


def _names_in_files(column: Column) -> frozenset[str]:
    """Return the names of a column, also as Iceberg escapes them in files."""
    from pyiceberg.schema import make_compatible_name

    return names_of(column).union(map(make_compatible_name, names_of(column)))


def _person(erasable: Erasable, named: Named) -> Person:
    name, values = named.column.lower(), frozenset({named.value, normal_id(named.value)})
    for subject in erasable.subjects:
        if name in subject.names:
            return Person(subject.name, values)
    for subject in erasable.subjects:
        if names := subject.personal_names(name):
            return Person(subject.name, frozenset(), dict.fromkeys(sorted(names), values))
    raise LakehouseError(
        f"{named.column} is neither a subject nor a personal column of any table; expected one"
        " that a table declares."
    )
