"""Files and partitions in which the rows of two snapshots can differ."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from lakehouse.iceberg.metadata.all_partitions import rows_of
from lakehouse.iceberg.metadata.manifests import partition_values, read_manifests
from lakehouse.iceberg.metadata.value_ranges import Bound, ValueRange, joined, within
from lakehouse.tables.quoting import identifier, in_values

if TYPE_CHECKING:
    import numpy as np
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

MOST_VALUES = 1000
"""Maximum number of files or values in a predicate; with more, reading more rows is cheaper."""
_FILE_PATH_ID = 2147483546
"""The reserved field id of the data file's path in a position delete file."""
_UNITS: Mapping[str, Literal["Y", "M", "D", "h"]] = {
    "year": "Y",
    "month": "M",
    "day": "D",
    "hour": "h",
}
"""NumPy's units of Iceberg's time transforms."""


@dataclass(frozen=True)
class TouchedFile:
    """A file that only one of two snapshots has."""

    path: str
    values: Mapping[int, Any]
    """Value of each field of the file's partition spec, by field id."""
    is_delete: bool
    deletes_from: str | None = None
    """The data file that a delete file applies to, if known."""


@dataclass(frozen=True)
class Touched:
    """The files that differ between two snapshots."""

    before: tuple[TouchedFile, ...] = ()
    """Files that only the earlier snapshot has."""
    after: tuple[TouchedFile, ...] = ()

    @property
    def all(self) -> tuple[TouchedFile, ...]:
        """Files of both sides."""
        return self.before + self.after

    @property
    def only_adds(self) -> bool:
        """Whether the later snapshot only adds data files."""
        return not self.before and not any(file.is_delete for file in self.after)

    @property
    def data_files(self) -> frozenset[str] | None:
        """The data files with different rows; None if a delete file does not name its data
        file.

        Rows of other files are in both snapshots or in neither.
        """
        paths = [file.deletes_from if file.is_delete else file.path for file in self.all]
        return None if None in paths else frozenset(path for path in paths if path)


def touched_files(table: "Table", before: int | None, after: int | None) -> Touched:
    """Compare the manifests of two snapshots; shared manifests are not opened. None is a table
    without rows.
    """
    earlier = [] if before is None else read_manifests(table, before)
    later = [] if after is None else read_manifests(table, after)
    earlier_files = _live_files(table, earlier, later)
    later_files = _live_files(table, later, earlier)
    return Touched(
        before=tuple(earlier_files[path] for path in earlier_files if path not in later_files),
        after=tuple(later_files[path] for path in later_files if path not in earlier_files),
    )


def file_predicate(touched: Touched) -> str | None:
    """Return the predicate of the rows in the differing files, by Iceberg's column `_file`;
    None if it is long.
    """
    paths = touched.data_files
    if paths is None or len(paths) > MOST_VALUES:
        return None
    return in_values("_file", paths)


def partition_predicate(
    table: "Table", schema: "Schema", files: Collection[TouchedFile]
) -> str | None:
    """Return a predicate that all rows in some files match, from their partition values; None
    if unknown.

    Iceberg uses it to skip files.

    :param schema: of the snapshot to read, whose columns can have former names.
    """
    fields = {}
    for spec in table.specs().values():
        for spec_field in spec.fields:
            fields[spec_field.field_id] = spec_field
    types = {column.field_id: str(column.field_type) for column in table.schema().fields}
    tests = []
    for field_id in sorted(fields):
        field = fields[field_id]
        is_shared = files and all(field_id in file.values for file in files)
        # Nested and dropped source columns are skipped.
        if not is_shared or field.source_id not in types:
            continue
        values = {file.values[field_id] for file in files}
        column = schema.find_column_name(field.source_id)
        if column and "." not in column and len(values) <= MOST_VALUES:
            column_type = types[field.source_id]
            tests.append(_field_predicate(column, column_type, str(field.transform), values))
    return " AND ".join(filter(None, tests)) or None


def _live_files(
    table: "Table", manifests: "list[ManifestFile]", excluded: "list[ManifestFile]"
) -> dict[str, TouchedFile]:
    """Return the live files of the manifests without the excluded ones, by path."""
    shared = {manifest.manifest_path for manifest in excluded}
    files: dict[str, TouchedFile] = {}
    for manifest in manifests:
        if manifest.manifest_path not in shared:
            files.update((file.path, file) for file in _files(table, manifest))
    return files


def _files(table: "Table", manifest: "ManifestFile") -> Iterator[TouchedFile]:
    spec = table.specs()[manifest.partition_spec_id]
    for entry in manifest.fetch_manifest_entry(table.io):
        file = entry.data_file
        is_delete = int(file.content) > 0
        yield TouchedFile(
            file.file_path,
            partition_values(table, spec, entry),
            is_delete,
            _deletes_from(file) if is_delete else None,
        )


def _deletes_from(file: "DataFile") -> str | None:
    low = (file.lower_bounds or {}).get(_FILE_PATH_ID)
    high = (file.upper_bounds or {}).get(_FILE_PATH_ID)
    return low.decode() if low is not None and low == high else None


def _field_predicate(
    column: str, column_type: str, transform: str, values: set[Any]
) -> str | None:
    if transform == "identity" and column_type in ("boolean", "int", "long", "string", "date"):
        return rows_of(column, values, is_timestamp=False)
    if transform not in _UNITS or column_type not in ("date", "timestamptz"):
        return None
    ranges = [_range(transform, column_type, value) for value in values - {None}]
    if not all(isinstance(bound, date) for value_range in ranges for bound in value_range):
        return None
    tests = within(column, joined(ranges))
    if None in values:
        tests.append(f"{identifier(column)} IS NULL")
    return f"({' OR '.join(tests)})"


def _range(transform: str, column_type: str, value: Any) -> ValueRange:
    """Return the first value of a time partition, and the first value after it; a number
    outside of Python's range, as after 9999-12-31.
    """
    import numpy as np

    first = np.datetime64(value, _UNITS[transform])
    return _bound(first, column_type), _bound(first + 1, column_type)


def _bound(at: "np.datetime64", column_type: str) -> Bound:
    if column_type == "date":
        return cast(date, at.astype("datetime64[D]").item())
    return cast(datetime, at.astype("datetime64[us]").item()).replace(tzinfo=UTC)
