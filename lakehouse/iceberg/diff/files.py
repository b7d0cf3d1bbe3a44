"""Where the rows of two snapshots can differ: the files that only one of them has, and the
partitions of these.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.manifests import partition_values, read_manifests
from lakehouse.iceberg.metadata.value_ranges import joined, within
from lakehouse.tables.quoting import among, identifier, literals

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

MOST_VALUES = 1000
"""Of how many files or values a predicate is made; with more of them, reading more rows is the
lesser evil.
"""
_FILE_PATH_ID = 2147483546
"""The reserved field of a position delete file that holds the path of the data file."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Moments = tuple[datetime, datetime]


@dataclass(frozen=True)
class TouchedFile:
    """A file that one of two snapshots has, and the other has not."""

    path: str
    values: Mapping[int, Any]
    """Value of each field of the file's partition spec, by field id."""
    is_delete: bool
    deletes_from: str | None = None
    """The data file that a delete file is about, where it tells."""


@dataclass(frozen=True)
class Touched:
    """The files in which two snapshots differ."""

    before: tuple[TouchedFile, ...] = ()
    """Those that only the earlier one has."""
    after: tuple[TouchedFile, ...] = ()

    @property
    def all(self) -> tuple[TouchedFile, ...]:
        """Those of both sides."""
        return self.before + self.after

    @property
    def only_adds(self) -> bool:
        """Whether all of it are data files that the later snapshot has and the earlier has
        not.
        """
        return not self.before and not any(file.is_delete for file in self.after)

    @property
    def data_files(self) -> frozenset[str] | None:
        """The data files whose rows are not the same in both; None where a delete file does not
        tell which it changes.

        A row of any other file is in both snapshots, or in neither.
        """
        paths = [file.deletes_from if file.is_delete else file.path for file in self.all]
        return None if None in paths else frozenset(path for path in paths if path)


def touched_files(table: "Table", before: int | None, after: int | None) -> Touched:
    """Compare the manifests of two snapshots; those that both have are not opened. None is a
    table without rows.
    """
    earlier, later = ([] if at is None else read_manifests(table, at) for at in (before, after))
    left, right = _live_files(table, earlier, later), _live_files(table, later, earlier)
    return Touched(
        before=tuple(file for path, file in left.items() if path not in right),
        after=tuple(file for path, file in right.items() if path not in left),
    )


def file_predicate(touched: Touched) -> str | None:
    """Return the predicate of the rows in the files that differ, by Iceberg's column `_file`;
    None where it is long.
    """
    paths = touched.data_files
    if paths is None or len(paths) > MOST_VALUES:
        return None
    return f"{identifier('_file')} IN {literals(sorted(paths))}" if paths else "false"


def partition_predicate(
    table: "Table", schema: "Schema", files: Iterable[TouchedFile]
) -> str | None:
    """Return a predicate that all rows in some files meet, made of their partitions; None where
    these do not tell.

    Iceberg prunes files by it.

    :param schema: that of the snapshot that is read: a column may have had another name then.
    """
    given = list(files)
    shared = set.intersection(*(set(file.values) for file in given)) if given else set()
    fields = {field.field_id: field for spec in table.specs().values() for field in spec.fields}
    parts = []
    for field_id in sorted(shared):
        source = fields[field_id].source_id
        column, kind = schema.find_column_name(source), _type(table.schema(), source)
        values = {file.values[field_id] for file in given}
        if column and "." not in column and kind and len(values) <= MOST_VALUES:
            parts += _of_field(column, kind, str(fields[field_id].transform), values)
    return " AND ".join(parts) or None


def _live_files(
    table: "Table", manifests: "list[ManifestFile]", others: "list[ManifestFile]"
) -> dict[str, TouchedFile]:
    """Return the live files of the manifests that are not among the others, by path."""
    known = {manifest.manifest_path for manifest in others}
    found = (
        _files(table, manifest) for manifest in manifests if manifest.manifest_path not in known
    )
    return {file.path: file for files in found for file in files}


def _files(table: "Table", manifest: "ManifestFile") -> Iterator[TouchedFile]:
    spec = table.specs()[manifest.partition_spec_id]
    for entry in manifest.fetch_manifest_entry(table.io):
        found = entry.data_file
        is_delete = int(found.content) > 0
        deletes_from = _deletes_from(found) if is_delete else None
        yield TouchedFile(
            found.file_path, partition_values(table, spec, entry), is_delete, deletes_from
        )


def _deletes_from(file: "DataFile") -> str | None:
    low, high = (
        (bounds or {}).get(_FILE_PATH_ID) for bounds in (file.lower_bounds, file.upper_bounds)
    )
    return low.decode() if low is not None and low == high else None


def _type(schema: "Schema", field_id: int) -> str:
    return next(
        (str(field.field_type) for field in schema.fields if field.field_id == field_id), ""
    )


def _of_field(column: str, kind: str, transform: str, values: set[Any]) -> list[str]:
    if transform == "identity" and kind in ("boolean", "int", "long", "string", "date"):
        return [among(column, values)]
    if transform not in _SPANS or kind not in ("date", "timestamptz"):
        return []
    moments = [_SPANS[transform](value) for value in values if value is not None]
    spans = [
        (low.date(), high.date()) if kind == "date" else (low, high) for low, high in moments
    ]
    tests = within(column, joined(spans))
    return [
        f"({' OR '.join([*tests, *([f'{identifier(column)} IS NULL'] if None in values else [])])})"
    ]


def _day(value: date) -> Moments:
    low = datetime(value.year, value.month, value.day, tzinfo=UTC)
    return low, low + timedelta(days=1)


def _hour(value: int) -> Moments:
    return _EPOCH + timedelta(hours=value), _EPOCH + timedelta(hours=value + 1)


def _month(value: int) -> Moments:
    low, high = (divmod(1970 * 12 + month, 12) for month in (value, value + 1))
    return datetime(low[0], low[1] + 1, 1, tzinfo=UTC), datetime(
        high[0], high[1] + 1, 1, tzinfo=UTC
    )


def _year(value: int) -> Moments:
    return datetime(1970 + value, 1, 1, tzinfo=UTC), datetime(1971 + value, 1, 1, tzinfo=UTC)


_SPANS: dict[str, Callable[[Any], Moments]] = {
    "day": _day,
    "hour": _hour,
    "month": _month,
    "year": _year,
}
