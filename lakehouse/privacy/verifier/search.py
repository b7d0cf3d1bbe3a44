"""Everything below a home or in a bucket is read, reachable from a table or not."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO
from urllib.parse import unquote

import pyarrow as pa

from lakehouse.privacy.verifier.byte_search import ByteSearch
from lakehouse.privacy.verifier.column_values import HmacMatcher, ValueMatcher
from lakehouse.privacy.verifier.held_columns import ColumnNames, HeldColumns
from lakehouse.privacy.verifier.inspection import inspect
from lakehouse.privacy.verifier.places import place_of
from lakehouse.privacy.verifier.report import FilesRead, Method, Report
from lakehouse.privacy.verifier.roots import Root, RootEntry
from lakehouse.privacy.verifier.search_state import FilePart, SearchState
from lakehouse.privacy.verifier.sought_values import SoughtValues
from lakehouse.tables.person import Person


@dataclass(frozen=True)
class Progress:
    """How far a search is."""

    files: int
    size_bytes: int
    place: str
    """What was read last."""


def tell_nobody(progress: Progress) -> None:
    """Take note of nothing."""


def search(
    roots: Sequence[Root],
    people: Sequence[Person],
    columns: Sequence[HeldColumns],
    remaining_values: Iterable[str] = (),
    progress: Callable[[Progress], None] = tell_nobody,
) -> Report:
    """Say where people are by their values, in decoded columns and in all bytes.

    :param columns: of all tables and feeds that have people in them.
    :param remaining_values: the personal values of people who remain, which explain a hit: read
        once, one at a time.
    """
    values = SoughtValues.of(people, remaining_values)
    state = SearchState(
        ByteSearch(values), ValueMatcher(values), ColumnNames(columns), values.integers()
    )
    return _search(roots, state, "values", progress)


def search_hmacs(
    roots: Sequence[Root],
    key: bytes,
    hmacs: Sequence[str],
    columns: Sequence[HeldColumns],
    progress: Callable[[Progress], None] = tell_nobody,
) -> Report:
    """Say where people are by the HMACs of their values, in the declared columns alone.

    :param hmacs: `person_hmac` of each, in hexadecimal digits.
    """
    state = SearchState(None, HmacMatcher(key, hmacs), ColumnNames(columns))
    return _search(roots, state, "hmacs", progress)


def _search(
    roots: Sequence[Root],
    state: SearchState,
    method: Method,
    progress: Callable[[Progress], None],
) -> Report:
    files = size_bytes = 0
    for root in roots:
        for entry in root.entries():
            place = place_of(entry.key)
            _search_entry(root, entry, state, place, is_one_of_many=len(roots) > 1)
            files += 1
            size_bytes += entry.size_bytes
            progress(Progress(files, size_bytes, place))
    read = {
        kind: FilesRead(state.files_by_kind[kind], state.bytes_by_kind[kind])
        for kind in sorted(state.files_by_kind)
    }
    return Report(
        method,
        tuple(root.name for root in roots),
        tuple(state.residues),
        tuple(state.shared),
        tuple(sorted(state.gaps)),
        state.all_compared(),
        read,
        tuple(sorted(state.places)),
    )


def _search_entry(
    root: Root, entry: RootEntry, state: SearchState, place: str, *, is_one_of_many: bool
) -> None:
    state.places.add(place)
    part = _part(root, entry, state, place, is_one_of_many=is_one_of_many)
    if entry.problem:
        part.gap("not readable", entry.problem, is_blocking=entry.is_gap)
        return
    try:
        file = root.open(entry)
    except FileNotFoundError:
        part.gap("changed", "gone before it was read", is_blocking=False)
        return
    except OSError as error:
        part.gap("not readable", _why(error))
        return
    with file:
        _search_open(file, part)


def _search_open(file: BinaryIO, part: FilePart) -> None:
    """Search what a file was when it was opened."""
    try:
        size_bytes = file.seek(0, os.SEEK_END)
        inspect(file, size_bytes, part)
        size_bytes_after = file.seek(0, os.SEEK_END)
    except OSError as error:
        part.gap("not readable", _why(error))
        return
    if size_bytes_after > size_bytes:
        what = f"it grew while it was read; its first {size_bytes} bytes were"
        part.gap("changed", what, is_blocking=False)
    elif size_bytes_after < size_bytes:
        what = f"it was cut from {size_bytes} to {size_bytes_after} bytes while it was read"
        part.gap("changed", what, is_blocking=False)


def _why(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def _part(
    root: Root, entry: RootEntry, state: SearchState, place: str, *, is_one_of_many: bool
) -> FilePart:
    names = state.names.of(entry.key)
    part = FilePart(
        state,
        place,
        "",
        entry.key,
        names,
        state.names.are_declared(entry.key),
        open_beside=lambda name: root.open_beside(entry, name),
        fields=state.names.fields_of(entry.key),
    )
    # The finding in a name needs a name, which does not have the value in it.
    unnamed = replace(part, file=_parent(entry.key))
    title = unnamed.masked(entry.title, "name of a file")
    title = _without_partition_values(unnamed, title)
    return replace(part, file=root.address(title) if is_one_of_many else title)


def _parent(key: str) -> str:
    return key.partition("/")[0]


def _without_partition_values(part: FilePart, title: str) -> str:
    """Compare the values that folders of partitions are named for (`customer_id=7`)."""
    parts = title.split("/")
    for number, text in enumerate(parts):
        name, equals, value = text.partition("=")
        if not equals or not part.compares([name]):
            continue
        for _, sought in part.matches([name], pa.array([unquote(value)])):
            part.found(sought, "name of a folder", column=name)
            parts[number] = f"{name}=[value]"
    return "/".join(parts)
