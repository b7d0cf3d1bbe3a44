"""The proof that people are erased: a search of all files, reachable from a table or not."""

import gzip
import json
import os
import secrets
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse.privacy.verifier.columns import (
    ColumnNames,
    HeldColumns,
    HmacMatcher,
    ValueMatcher,
)
from lakehouse.privacy.verifier.file_part import MASK, FilePart, SearchState
from lakehouse.privacy.verifier.formats import inspect
from lakehouse.privacy.verifier.report import ControlResult, Finding, Method, Report
from lakehouse.privacy.verifier.roots import FolderRoot, Root, RootEntry, reason
from lakehouse.privacy.verifier.values import ByteSearch, SearchedValues
from lakehouse.tables.person import Person, person_hmac


def by_values(
    people: Sequence[Person],
    columns: Sequence[HeldColumns],
    remaining_values: Iterable[str] = (),
) -> SearchState:
    """Return a search for people by their values, in decoded columns and in all bytes.

    :param columns: of all tables and feeds with data subjects.
    :param remaining_values: personal values of people who remain, which explain a hit.
    """
    values = SearchedValues(people, remaining_values)
    matcher, names = ValueMatcher(values), ColumnNames(columns)
    return SearchState(matcher, names, ByteSearch(values), values.integers())


def by_hmacs(key: bytes, hmacs: Sequence[str], columns: Sequence[HeldColumns]) -> SearchState:
    """Return a search for people by the HMACs of their values, in the declared columns only.

    :param hmacs: `person_hmac` of each value, in hexadecimal digits.
    """
    return SearchState(HmacMatcher(key, hmacs), ColumnNames(columns))


def verify(roots: Sequence[Root], state: SearchState) -> Report:
    """Search with a control."""
    report = search(roots, state)
    return replace(report, control=run_control(report.method))


def search(roots: Sequence[Root], state: SearchState) -> Report:
    """Search all files of some roots."""
    for root in roots:
        for entry in root.entries():
            _search_entry(root, entry, state, has_other_roots=len(roots) > 1)
    return Report(
        "values" if state.search else "hmacs",
        tuple(root.name for root in roots),
        _findings(state.residues),
        _findings(state.shared),
        tuple(sorted(state.gaps)),
        state.files,
        state.size_bytes,
    )


def _findings(counts: Counter[Finding]) -> tuple[Finding, ...]:
    return tuple(replace(finding, count=counts[finding]) for finding in sorted(counts))


def _search_entry(
    root: Root, entry: RootEntry, state: SearchState, *, has_other_roots: bool
) -> None:
    part = _part(root, entry, state, has_other_roots=has_other_roots)
    if entry.problem:
        part.add_gap("not readable", entry.problem, is_blocking=entry.is_gap)
        return
    try:
        with root.open(entry) as file:
            _search_open(file, part)
    except FileNotFoundError:
        part.add_gap("changed", "removed before it was read", is_blocking=False)
    except OSError as error:
        part.add_gap("not readable", reason(error))


def _search_open(file: BinaryIO, part: FilePart) -> None:
    """Search the bytes that a file has when it is opened."""
    size_bytes = file.seek(0, os.SEEK_END)
    inspect(file, size_bytes, part)
    size_after = file.seek(0, os.SEEK_END)
    if size_after != size_bytes:
        what = f"it had {size_bytes} bytes, and has {size_after} after it was read"
        part.add_gap("changed", what, is_blocking=False)


def _part(
    root: Root, entry: RootEntry, state: SearchState, *, has_other_roots: bool
) -> FilePart:
    names, fields = state.names.of(entry.key)
    part = FilePart(
        state,
        # The finding in a name needs a name without the value.
        entry.key.partition("/")[0],
        entry.key,
        names,
        fields,
        path=root.path(entry),
    )
    title = _without_partition_values(part, part.masked(entry.title))
    return replace(part, file=root.address(title) if has_other_roots else title)


def _without_partition_values(part: FilePart, title: str) -> str:
    """Compare the values in the names of partition folders (`customer_id=7`)."""
    folders = title.split("/")
    for number, folder in enumerate(folders):
        name, equals, value = folder.partition("=")
        if equals and part.declared([name]):
            before = part.state.residues.total()
            part.compare([name], pa.array([unquote(value)]), "name of a folder")
            if part.state.residues.total() > before:
                folders[number] = f"{name}={MASK}"
    return "/".join(folders)


_ID = "customer_id"
_EMAIL = "customer_email"
_CONTROL_COLUMNS = HeldColumns(
    ("archive",), {_ID: frozenset()}, {_EMAIL: frozenset()}, {1: _ID, 2: _EMAIL}
)


def run_control(method: Method) -> ControlResult:
    """Search for a generated person in the columns of Parquet and in compressed JSON."""
    person_id = str(1_000_000 + secrets.randbelow(8_000_000))
    email = f"é{secrets.token_hex(12)}@control.invalid"
    with tempfile.TemporaryDirectory(prefix="lakehouse-control-") as home:
        folder = Path(home, "archive")
        folder.mkdir()
        names = _write_control(folder, person_id, email)
        roots = [FolderRoot(Path(home))]
        if method == "values":
            personal = {_EMAIL: frozenset({email})}
            person = Person(_ID, frozenset({person_id}), personal)
            state = by_values([person], [_CONTROL_COLUMNS])
        else:
            key = secrets.token_bytes(32)
            hmacs = [person_hmac(key, _ID, person_id), person_hmac(key, _EMAIL, email)]
            state = by_hmacs(key, hmacs, [_CONTROL_COLUMNS])
        report = search(roots, state)
    findings = {(Path(finding.file).name, finding.kind) for finding in report.findings}
    found = [name for name in names if {(name, "id"), (name, "personal value")} <= findings]
    missed = [name for name in names if name not in found]
    return ControlResult(tuple(found), tuple(missed))


def _write_control(folder: Path, person_id: str, email: str) -> list[str]:
    # With other names, so that the field ids identify the columns.
    fields: list[pa.Field[Any]] = [
        pa.field("_1", pa.int64(), metadata={"PARQUET:field_id": "1"}),
        pa.field("_2", pa.string(), metadata={"PARQUET:field_id": "2"}),
    ]
    arrays: list[pa.Array[Any]] = [pa.array([int(person_id)]), pa.array([email])]
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    pq.write_table(table, folder / "control.parquet", write_statistics=False)
    row = json.dumps({_ID: person_id, _EMAIL: email})
    (folder / "control.json.gz").write_bytes(gzip.compress(row.encode()))
    return ["control.parquet", "control.json.gz"]
