"""The search of all files below a home or in a bucket, reachable from a table or not."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import BinaryIO
from urllib.parse import unquote

from lakehouse.privacy.verifier.columns import (
    ColumnNames,
    HeldColumns,
    HmacMatcher,
    ValueMatcher,
)
from lakehouse.privacy.verifier.file_part import FilePart, SearchState
from lakehouse.privacy.verifier.formats import inspect
from lakehouse.privacy.verifier.places import place_of
from lakehouse.privacy.verifier.report import Compared, FilesRead, Finding, Method, Report
from lakehouse.privacy.verifier.roots import Root, RootEntry, reason
from lakehouse.privacy.verifier.values import ByteSearch, SearchedValues
from lakehouse.tables.person import Person


def search(
    roots: Sequence[Root],
    people: Sequence[Person],
    columns: Sequence[HeldColumns],
    remaining_values: Iterable[str] = (),
) -> Report:
    """Search for people by their values, in decoded columns and in all bytes.

    :param columns: of all tables and feeds with data subjects.
    :param remaining_values: personal values of people who remain, which explain a hit.
    """
    return _search(roots, state_of(people, columns, remaining_values), "values")


def state_of(
    people: Sequence[Person],
    columns: Sequence[HeldColumns],
    remaining_values: Iterable[str] = (),
) -> SearchState:
    """Return the state of a search by values."""
    values = SearchedValues(people, remaining_values)
    return SearchState(
        ValueMatcher(values),
        ColumnNames(columns),
        ByteSearch(values),
        values.integers(),
        values.bounds(),
    )


def search_hmacs(
    roots: Sequence[Root], key: bytes, hmacs: Sequence[str], columns: Sequence[HeldColumns]
) -> Report:
    """Search for people by the HMACs of their values, in the declared columns only.

    :param hmacs: `person_hmac` of each value, in hexadecimal digits.
    """
    state = SearchState(HmacMatcher(key, hmacs), ColumnNames(columns))
    return _search(roots, state, "hmacs")


def _search(roots: Sequence[Root], state: SearchState, method: Method) -> Report:
    for root in roots:
        for entry in root.entries():
            _search_entry(root, entry, state, has_other_roots=len(roots) > 1)
    read = {
        kind: FilesRead(state.files_by_kind[kind], state.bytes_by_kind[kind])
        for kind in sorted(state.files_by_kind)
    }
    compared = [
        Compared(file, tuple(sorted(columns)))
        for file, columns in sorted(state.compared.items())
    ]
    return Report(
        method,
        tuple(root.name for root in roots),
        _findings(state.residues),
        _findings(state.shared),
        tuple(sorted(state.gaps)),
        tuple(compared),
        read,
    )


def _findings(counts: Counter[Finding]) -> tuple[Finding, ...]:
    return tuple(replace(finding, count=counts[finding]) for finding in sorted(counts))


def _search_entry(
    root: Root, entry: RootEntry, state: SearchState, *, has_other_roots: bool
) -> None:
    part = _part(root, entry, state, has_other_roots=has_other_roots)
    if entry.problem:
        part.gap("not readable", entry.problem, is_blocking=entry.is_gap)
        return
    try:
        file = root.open(entry)
    except FileNotFoundError:
        part.gap("changed", "removed before it was read", is_blocking=False)
        return
    except OSError as error:
        part.gap("not readable", reason(error))
        return
    with file:
        try:
            _search_open(file, part)
        except OSError as error:
            part.gap("not readable", reason(error))


def _search_open(file: BinaryIO, part: FilePart) -> None:
    """Search the bytes that a file has when it is opened."""
    size_bytes = file.seek(0, os.SEEK_END)
    inspect(file, size_bytes, part)
    size_after = file.seek(0, os.SEEK_END)
    if size_after != size_bytes:
        what = f"it had {size_bytes} bytes, and has {size_after} after it was read"
        part.gap("changed", what, is_blocking=False)


def _part(
    root: Root, entry: RootEntry, state: SearchState, *, has_other_roots: bool
) -> FilePart:
    of_table = state.names.of(entry.key)
    names, fields = of_table or (state.names.anywhere, {})
    part = FilePart(
        state,
        place_of(entry.key),
        # The finding in a name needs a name without the value.
        entry.key.partition("/")[0],
        entry.key,
        names,
        fields,
        is_declared=of_table is not None,
        path=root.path(entry),
    )
    title = part.masked(entry.title, "name of a file")
    title = _without_partition_values(part, title)
    return replace(part, file=root.address(title) if has_other_roots else title)


def _without_partition_values(part: FilePart, title: str) -> str:
    """Compare the values in the names of partition folders (`customer_id=7`)."""
    parts = title.split("/")
    for number, text in enumerate(parts):
        name, equals, value = text.partition("=")
        if equals and part.held([name]):
            before = part.state.residues.total()
            part.compare_values([name], [unquote(value)], "name of a folder")
            if part.state.residues.total() > before:
                parts[number] = f"{name}=[value]"
    return "/".join(parts)
