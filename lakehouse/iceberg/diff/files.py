"""Files and partitions in which the rows of two snapshots can differ."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.all_partitions import rows_of, value_range_of
from lakehouse.iceberg.metadata.existing_partitions import EXTENT_BY_TRANSFORM
from lakehouse.iceberg.metadata.live_files import LiveFile, read_live_files
from lakehouse.iceberg.metadata.manifests import read_manifests
from lakehouse.iceberg.metadata.value_ranges import joined, within
from lakehouse.tables.quoting import identifier, in_values

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

MOST_VALUES = 1000
"""Maximum number of files or values in a predicate; with more, reading more rows is cheaper."""
_LIKE = {"date": date.min, "timestamptz": datetime.min.replace(tzinfo=UTC)}
"""A value of each type that time partitions are converted to."""
_ENDS = (date.min.year, date.max.year)
"""Years in which a value of Python can represent several dates of Spark."""


@dataclass(frozen=True)
class Touched:
    """The files that differ between two snapshots."""

    before: tuple[LiveFile, ...] = ()
    """Files that only the earlier snapshot has."""
    after: tuple[LiveFile, ...] = ()

    @property
    def all(self) -> tuple[LiveFile, ...]:
        """Files of both sides."""
        return self.before + self.after

    @property
    def only_adds(self) -> bool:
        """Whether the later snapshot only adds data files."""
        return not self.before and not any(file.content != "data" for file in self.after)

    @property
    def data_files(self) -> frozenset[str] | None:
        """The data files with different rows; None if a delete file does not name its data
        file.
        """
        paths = [
            file.path if file.content == "data" else file.deletes_from for file in self.all
        ]
        return None if None in paths else frozenset(path for path in paths if path)


def touched_files(table: "Table", before: int | None, after: int | None) -> Touched:
    """Compare the manifests of two snapshots (None: no rows); shared ones are not opened."""
    earlier = [] if before is None else read_manifests(table, before)
    later = [] if after is None else read_manifests(table, after)
    earlier_files = _live_files(table, earlier, later)
    later_files = _live_files(table, later, earlier)
    return Touched(
        before=tuple(earlier_files[path] for path in earlier_files if path not in later_files),
        after=tuple(later_files[path] for path in later_files if path not in earlier_files),
    )


def file_predicate(touched: Touched) -> str | None:
    """Return the predicate of the rows in the differing files; None if it is long."""
    paths = touched.data_files
    if paths is None or len(paths) > MOST_VALUES:
        return None
    return in_values("_file", paths)


def partition_predicate(
    table: "Table", schema: "Schema", files: Collection[LiveFile]
) -> str | None:
    """Return a predicate on partitions that all rows in some files match; None if unknown.

    :param schema: of the snapshot to read, whose columns can have former names.
    """
    specs = table.specs()
    by_file: list[dict[int, Any]] = []
    for file in files:
        fields, values = specs[file.partition.spec_id].fields, file.partition.values
        by_file.append(
            {field.field_id: value for field, (_, value) in zip(fields, values, strict=True)}
        )
    all_fields = {field.field_id: field for spec in specs.values() for field in spec.fields}
    types = {column.field_id: str(column.field_type) for column in table.schema().fields}
    tests = []
    for field_id, field in sorted(all_fields.items()):
        is_shared = by_file and all(field_id in values for values in by_file)
        # Nested and dropped source columns are skipped.
        if not is_shared or field.source_id not in types:
            continue
        field_values = {values[field_id] for values in by_file}
        column = schema.find_column_name(field.source_id)
        if column and "." not in column and len(field_values) <= MOST_VALUES:
            column_type = types[field.source_id]
            tests.append(
                _field_predicate(column, column_type, str(field.transform), field_values)
            )
    return " AND ".join(filter(None, tests)) or None


def _live_files(
    table: "Table", manifests: "list[ManifestFile]", excluded: "list[ManifestFile]"
) -> dict[str, LiveFile]:
    """Return the live files of the manifests without the excluded ones, by path."""
    shared = {manifest.manifest_path for manifest in excluded}
    own = (manifest for manifest in manifests if manifest.manifest_path not in shared)
    return {file.path: file for file in read_live_files(table, own)}


def _field_predicate(
    column: str, column_type: str, transform: str, values: set[Any]
) -> str | None:
    if transform == "identity" and column_type in ("boolean", "int", "long", "string", "date"):
        return rows_of(column, values, is_timestamp=False)
    if transform not in ("day", "month", "hour") or column_type not in _LIKE:
        return None
    like = _LIKE[column_type]
    extents = map(EXTENT_BY_TRANSFORM[transform], values - {None})
    ranges = [
        (value_range_of(first, like)[0], value_range_of(last, like)[1])
        for first, last in extents
    ]
    if any(bound.year in _ENDS for value_range in ranges for bound in value_range):  # type: ignore[union-attr]
        return None
    tests = within(column, joined(ranges))
    if None in values:
        tests.append(f"{identifier(column)} IS NULL")
    return f"({' OR '.join(tests)})"
