"""One file of a search, or the content of a compressed one, and what was found in it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.privacy.verifier.columns import (
    ColumnNames,
    HeldColumn,
    Matcher,
    Names,
    column_texts,
    leaf_columns,
    text_block,
    without_common_names,
)
from lakehouse.privacy.verifier.report import Finding, Gap, NotProved
from lakehouse.privacy.verifier.values import ByteSearch, Sought, fold

MASK = "[value]"


@dataclass
class SearchState:
    """What a search looks for, and what it found."""

    matcher: Matcher
    names: ColumnNames
    search: ByteSearch | None = None
    """None if the values are known by their HMACs only."""
    integers: Mapping[int, Sought] = field(default_factory=dict)
    """Long ids, which are recognized in integer columns of any name."""
    bounds: Mapping[str, Sought] = field(default_factory=dict)
    """Truncated values, as Iceberg's manifests contain them."""
    residues: Counter[Finding] = field(default_factory=Counter)
    shared: Counter[Finding] = field(default_factory=Counter)
    gaps: set[NotProved] = field(default_factory=set)
    compared: dict[str, set[str]] = field(default_factory=dict)
    files_by_kind: Counter[str] = field(default_factory=Counter)
    bytes_by_kind: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class FilePart:
    """A file that is searched, or a part of it."""

    state: SearchState
    place: str
    file: str
    """Its name in the report, without values."""
    key: str
    names: Names
    fields: Mapping[int, str] = field(default_factory=dict)
    """Names of declared columns by Iceberg's field id."""
    is_declared: bool = False
    """Whether it belongs to a table with data subjects, or was delivered to one."""
    path: Path | None = None
    """Where a local file is; None for an object or an unpacked file."""
    inside: str = ""
    depth: int = 0
    """How often it was unpacked."""

    def within(self, name: str) -> "FilePart":
        """Return a part of this one."""
        return replace(self, inside=" › ".join(filter(None, (self.inside, name))))

    def unpacked(self, name: str, key: str) -> "FilePart":
        """Return the unpacked content of this part."""
        return replace(self.within(name), key=key, depth=self.depth + 1, path=None)

    def without_common_names(self) -> "FilePart":
        """Return this part for JSON that is no row, such as Iceberg's metadata."""
        return replace(self, names=without_common_names(self.names))

    def column_name(self, name: str, field_id: Any) -> str:
        """Return the declared name of a column of a data file."""
        return name if field_id is None else self.fields.get(int(field_id), name)

    def found(self, sought: Sought, how: str, column: str = "") -> None:
        """Add a finding."""
        findings = self.state.shared if sought.is_shared else self.state.residues
        finding = Finding(
            self.place, self.file, sought.kind, how, sought.person, self.inside, column
        )
        findings[finding] += 1

    def gap(self, gap: Gap, what: str, *, is_blocking: bool = True) -> None:
        """Add what the search does not cover."""
        self.state.gaps.add(NotProved(self.file, gap, what, self.inside, is_blocking))

    def masked(self, name: str, how: str) -> str:
        """Return a file name without the values in it, which are findings."""
        content = name.encode("utf-8", "surrogateescape")
        for hit in reversed(self.state.search.find(content) if self.state.search else []):
            assert hit.sought
            self.found(hit.sought, f"{how}, {hit.encoding}")
            content = content[: hit.start] + MASK.encode() + content[hit.end :]
        return content.decode("utf-8", "replace")

    def search_file(self, file: BinaryIO, size_bytes: int) -> None:
        """Search the stored bytes of a file."""
        if self.state.search is not None:
            for hit in self.state.search.find_in_file(file, size_bytes):
                assert hit.sought
                self.found(hit.sought, hit.encoding)

    def search_bytes(self, content: bytes, column: str = "") -> None:
        """Search decoded bytes."""
        if self.state.search is not None:
            for hit in self.state.search.find(content):
                assert hit.sought
                self.found(hit.sought, f"decoded {hit.encoding}", column)

    def held(self, path: Sequence[str]) -> dict[HeldColumn, None]:
        """Return the declared columns that a column, or a field of a nested one, has."""
        names = [self.names.get(name.strip().lower(), ()) for name in path]
        return dict.fromkeys(column for held in names for column in held)

    def compare(self, path: Sequence[str], texts: pa.StringArray, how: str = "column") -> None:
        """Compare the texts of a declared column."""
        column = ".".join(path)
        label = f"{self.inside}: {column}" if self.depth else column
        self.state.compared.setdefault(self.file, set()).add(label)
        for held in self.held(path):
            for sought in self.state.matcher.match(held, texts):
                self.found(sought, how, column)

    def compare_values(
        self, path: Sequence[str], values: Iterable[str], how: str = "column"
    ) -> None:
        """Compare the values of a declared field of JSON, CSV or SQLite."""
        self.compare(path, pa.array(values, pa.string()), how)

    def search_column(self, path: tuple[str, ...], values: Any, how: str = "column") -> None:
        """Search a decoded column and the columns nested in it."""
        for leaf, column in leaf_columns(path, values):
            self._search_leaf(leaf, pc.unique(column), how)

    def _search_leaf(self, path: tuple[str, ...], values: Any, how: str) -> None:
        block = text_block(values) if self.state.search else None
        if block is not None:
            self.search_bytes(block, ".".join(path))
        if self.held(path):
            self.compare(path, column_texts(values), how)
        elif self.state.integers and pa.types.is_integer(values.type):
            known = pa.array(list(self.state.integers), pa.int64())
            wide = values.cast(pa.int64(), safe=False)
            for number in wide.filter(pc.is_in(wide, value_set=known)).to_pylist():
                self.found(self.state.integers[number], "decoded integer", ".".join(path))

    def search_bound(self, path: tuple[str, ...], bound: Any) -> None:
        """Search a bound of a column, which Iceberg truncates."""
        sought = self.state.bounds.get(fold(bound)) if isinstance(bound, str) else None
        if sought is not None:
            self.found(sought, "bound", ".".join(path))
        self.search_column(path, pa.array([bound]), "bound")
