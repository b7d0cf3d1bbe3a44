"""What one search knows and has found, and the part of it that one file is."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

import pyarrow as pa

from lakehouse.privacy.verifier.byte_search import ByteSearch, Hit
from lakehouse.privacy.verifier.column_values import ColumnMatcher
from lakehouse.privacy.verifier.findings import (
    Compared,
    Finding,
    FindingsByPlace,
    Gap,
    NotProved,
)
from lakehouse.privacy.verifier.held_columns import (
    ColumnNames,
    Names,
    held_in,
    without_names_of_many,
)
from lakehouse.privacy.verifier.sought_values import Sought

MASK = b"[value]"
PartitionColumns = tuple[tuple[tuple[str, ...], str] | None, ...]
"""Of each field of a partition spec, the path and the type of the column that it keeps as it is;
None where it keeps another form of it.
"""


@dataclass
class SearchState:
    """What a search looks for, and what it found so far."""

    search: ByteSearch | None
    """None where values are known by their HMACs alone, which bytes cannot be searched for."""
    matcher: ColumnMatcher
    names: ColumnNames
    integers: Mapping[int, Sought] = field(default_factory=dict)
    """Ids that are integers and long enough to be told from others, whatever the column."""
    residues: FindingsByPlace = field(default_factory=FindingsByPlace)
    shared: FindingsByPlace = field(default_factory=FindingsByPlace)
    gaps: set[NotProved] = field(default_factory=set)
    compared: dict[str, set[str]] = field(default_factory=dict)
    files_by_kind: Counter[str] = field(default_factory=Counter)
    bytes_by_kind: Counter[str] = field(default_factory=Counter)
    places: set[str] = field(default_factory=set)
    partition_columns: dict[tuple[str, int], PartitionColumns] = field(default_factory=dict)
    """By a table's folder of metadata and the id of a partition spec."""

    def all_compared(self) -> tuple[Compared, ...]:
        """Return the columns that were compared, by file."""
        return tuple(
            Compared(file, tuple(sorted(columns)))
            for file, columns in sorted(self.compared.items())
        )


class TextToSearch:
    """A decoded text, and where it stands."""

    __slots__ = ("column", "content", "row")

    def __init__(self, content: bytes, column: str = "", row: int | None = None) -> None:
        self.content = content
        self.column = column
        self.row = row


def _none_beside(name: str) -> BinaryIO | None:  # noqa: ARG001
    return None


@dataclass(frozen=True)
class FilePart:
    """A file that is searched, or what is packed in it."""

    state: SearchState
    place: str
    file: str
    key: str
    names: Names
    is_declared: bool = False
    """Whether it is of a table, or delivered to one, that has people in it."""
    inside: str = ""
    depth: int = 0
    """How often it was unpacked."""
    open_beside: Callable[[str], BinaryIO | None] = _none_beside
    fields: Mapping[int, str] = field(default_factory=dict)
    """Names of columns by Iceberg's field id."""

    def column_name(self, name: str, field_id: Any) -> str:
        """Return the name of a column in the table; a file may have it escaped.

        :param field_id: its id in the file; None where it has none.
        """
        return name if field_id is None else self.fields.get(int(field_id), name)

    def within(self, name: str) -> "FilePart":
        """Return a part of this one."""
        inside = " › ".join(filter(None, (self.inside, name)))
        return replace(self, inside=inside)

    def unpacked(self, name: str, key: str) -> "FilePart":
        """Return what this one has packed in it, under a key of its own."""
        part = self.within(name)
        return replace(part, key=key, depth=self.depth + 1, open_beside=_none_beside)

    def outside_of_rows(self) -> "FilePart":
        """Return this part for what is no row of a table, such as Iceberg's own fields."""
        return replace(self, names=without_names_of_many(self.names))

    def found(
        self,
        sought: Sought,
        how: str,
        *,
        column: str = "",
        offset: int | None = None,
        row: int | None = None,
        count: int = 1,
    ) -> None:
        """Add a finding: a residue, or what somebody who remains explains."""
        place = self.state.shared if sought.is_shared else self.state.residues
        finding = Finding(
            self.place,
            self.file,
            sought.kind,
            how,
            sought.person,
            self.inside,
            column,
            offset,
            row,
            count,
        )
        place.add(finding)

    def gap(self, gap: Gap, what: str, *, is_blocking: bool = True) -> None:
        """Say what of this part is not proved."""
        self.state.gaps.add(NotProved(self.file, gap, what, self.inside, is_blocking))

    def masked(self, name: str, how: str) -> str:
        """Return the name of a file without values of people, which are findings."""
        content = name.encode("utf-8", "surrogateescape")
        hits = self.state.search.find(content) if self.state.search else []
        for hit in reversed(hits):
            self._found_bytes(hit, how=f"{how}, ")
            content = content[: hit.start] + MASK + content[hit.end :]
        return content.decode("utf-8", "replace")

    def search_file(
        self, file: BinaryIO, size_bytes: int, *, is_database: bool = False
    ) -> None:
        """Search the bytes of a file as they are, from its start."""
        if self.state.search is None:
            return
        file.seek(0)
        hits = self.state.search.find_in_file(file, size_bytes, in_longer_numbers=is_database)
        for hit in hits:
            self._found_bytes(hit, offset=hit.start)

    def search_block(self, content: bytes, *, is_database: bool = False) -> None:
        """Search bytes that stand nowhere as they are."""
        if self.state.search is not None:
            for hit in self.state.search.find(content, in_longer_numbers=is_database):
                self._found_bytes(hit)

    def search_texts(self, texts: Sequence[TextToSearch]) -> None:
        """Search decoded texts."""
        if self.state.search is None or not texts:
            return
        hits = self.state.search.find_in_texts(text.content for text in texts)
        for number, hit in hits:
            text = texts[number]
            self._found_bytes(hit, column=text.column, row=text.row, how="decoded ")

    def compares(self, path: Sequence[str]) -> bool:
        """Whether a column is one that has people in it."""
        return bool(held_in(self.names, path))

    def matches(self, path: Sequence[str], texts: pa.StringArray) -> list[tuple[int, Sought]]:
        """Compare the texts of a column that has people in it; return the position of each
        that is a person's.
        """
        column = ".".join(path)
        label = f"{self.inside}: {column}" if self.depth else column
        self.state.compared.setdefault(self.file, set()).add(label)
        found = []
        for held in held_in(self.names, path):
            found += self.state.matcher.match(held, texts)
        return found

    def search_values(self, path: Sequence[str], values: Sequence[TextToSearch]) -> None:
        """Compare the texts of a column that has people in it."""
        texts = [value.content.decode("utf-8", "replace") for value in values]
        for index, sought in self.matches(path, pa.array(texts, pa.string())):
            self.found(sought, "column", column=".".join(path), row=values[index].row)

    def _found_bytes(
        self,
        hit: Hit,
        *,
        how: str = "",
        column: str = "",
        offset: int | None = None,
        row: int | None = None,
    ) -> None:
        assert hit.sought
        label = f"{how}{hit.encoding}"
        self.found(hit.sought, label, column=column, offset=offset, row=row)
