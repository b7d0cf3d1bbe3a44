"""A file of a search, or a part of it, and what the search found."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.privacy.verifier.columns import (
    ColumnNames,
    DeclaredColumn,
    Matcher,
    Names,
    column_texts,
    leaf_columns,
    text_block,
)
from lakehouse.privacy.verifier.report import Finding, Gap, NotProved
from lakehouse.privacy.verifier.values import ByteSearch, Hit, ValueLabel

MASK = "[value]"
_DELIVERED = ("inbox", "archive", "rejected", "staging")


@dataclass
class SearchState:
    """The values of a search, and its results."""

    matcher: Matcher
    names: ColumnNames
    search: ByteSearch | None = None
    """None if the values are known by their HMACs only."""
    integers: Mapping[int, ValueLabel] = field(default_factory=dict)
    """Long ids, which are recognized in integer columns of any name."""
    residues: Counter[Finding] = field(default_factory=Counter)
    shared: Counter[Finding] = field(default_factory=Counter)
    gaps: set[NotProved] = field(default_factory=set)
    files: int = 0
    size_bytes: int = 0


@dataclass(frozen=True)
class FilePart:
    """A file that is searched, or a part of it."""

    state: SearchState
    file: str
    """Its name in the report, without values."""
    key: str
    names: Names
    fields: Mapping[int, str] = field(default_factory=dict)
    """Names of declared columns by Iceberg's field id."""
    path: Path | None = None
    """Path of a local file; None for an object or an unpacked file."""
    inside: str = ""
    depth: int = 0
    """How often it was unpacked."""

    def within(self, name: str) -> "FilePart":
        """Return a part of this one."""
        return replace(self, inside=f"{self.inside} › {name}" if self.inside else name)

    def unpacked(self, name: str, key: str) -> "FilePart":
        """Return the unpacked content of this part."""
        return replace(self.within(name), key=key, depth=self.depth + 1, path=None)

    @property
    def is_delivered(self) -> bool:
        """Whether it is a file as it was delivered, whose header or fields name its columns."""
        return self.key.partition("/")[0] in _DELIVERED

    def column_name(self, name: str, field_id: Any) -> str:
        """Return the declared name of a column of a data file."""
        return name if field_id is None else self.fields.get(int(field_id), name)

    def add_finding(self, label: ValueLabel, how: str, column: str = "") -> None:
        """Add a finding."""
        findings = self.state.shared if label.is_shared else self.state.residues
        finding = Finding(self.file, label.kind, how, label.person, self.inside, column)
        findings[finding] += 1

    def add_gap(self, gap: Gap, what: str, *, is_blocking: bool = True) -> None:
        """Add what the search does not cover."""
        self.state.gaps.add(NotProved(self.file, gap, what, self.inside, is_blocking))

    def masked(self, name: str) -> str:
        """Return a file name without the values in it, which are findings."""
        content = name.encode("utf-8", "surrogateescape")
        for hit in reversed(self._find(content)):
            self.add_finding(hit.label, f"name of a file, {hit.encoding}")
            content = content[: hit.start] + MASK.encode() + content[hit.end :]
        return content.decode("utf-8", "replace")

    def search_file(self, file: BinaryIO, size_bytes: int) -> None:
        """Search the stored bytes of a file."""
        if self.state.search is not None:
            for hit in self.state.search.find_in_file(file, size_bytes):
                self.add_finding(hit.label, hit.encoding)

    def search_bytes(self, content: bytes, column: str = "") -> None:
        """Search decoded bytes."""
        for hit in self._find(content):
            self.add_finding(hit.label, f"decoded {hit.encoding}", column)

    def _find(self, content: bytes) -> list[Hit]:
        return self.state.search.find(content) if self.state.search else []

    def declared(self, path: Sequence[str]) -> dict[DeclaredColumn, None]:
        """Return the declared columns that match a column, or a field of a nested one."""
        columns = [self.names.get(name.strip().lower(), ()) for name in path]
        return dict.fromkeys(column for by_name in columns for column in by_name)

    def compare(self, path: Sequence[str], texts: pa.StringArray, how: str = "column") -> None:
        """Compare the texts of a declared column."""
        for column in self.declared(path):
            for label in self.state.matcher.match(column, texts):
                self.add_finding(label, how, ".".join(path))

    def search_column(self, path: tuple[str, ...], values: Any) -> None:
        """Search a decoded column and the columns nested in it."""
        for leaf, column in leaf_columns(path, values):
            self._search_leaf(leaf, pc.unique(column))

    def _search_leaf(self, path: tuple[str, ...], values: Any) -> None:
        block = text_block(values) if self.state.search else None
        if block is not None:
            self.search_bytes(block, ".".join(path))
        if self.declared(path):
            self.compare(path, column_texts(values))
        elif self.state.integers and pa.types.is_integer(values.type):
            known = pa.array(list(self.state.integers), pa.int64())
            wide = values.cast(pa.int64(), safe=False)
            for number in wide.filter(pc.is_in(wide, value_set=known)).to_pylist():
                label = self.state.integers[number]
                self.add_finding(label, "decoded integer", ".".join(path))
