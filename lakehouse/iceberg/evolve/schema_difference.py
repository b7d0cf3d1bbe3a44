"""Differences between two schemas, partition specs or sort orders of a table, by field id."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.iceberg.evolve.schema_steps import Path, dotted
from lakehouse.iceberg.metadata.column_order import moves
from lakehouse.iceberg.metadata.column_types import column_type
from lakehouse.iceberg.metadata.table_state import parse_partition_fields, parse_sort_fields

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.sorting import SortOrder
    from pyiceberg.types import IcebergType, NestedField


@dataclass(frozen=True)
class Change:
    """One difference; `before` or `after` is empty for additions and removals."""

    what: str
    """Such as `column added`, `column renamed`, `type widened`, `partitioning changed`."""
    name: str = ""
    """The column, or the path to a nested field, by its new name."""
    before: str = ""
    after: str = ""


def schema_difference(before: "Schema", after: "Schema") -> list[Change]:
    """Return the differences between the columns of two schemas, at each depth of a struct."""
    return list(_fields((), before.fields, after.fields))


def partition_terms(spec: "PartitionSpec", schema: "Schema") -> str:
    """Format a partition spec as declared: `days(d), bucket(10, id)`; empty for none."""
    return ", ".join(map(str, parse_partition_fields([spec], schema)))


def sort_terms(order: "SortOrder", schema: "Schema") -> str:
    """Format a sort order as declared: `d desc nulls last, id asc nulls first`; empty for none."""
    return ", ".join(map(str, parse_sort_fields(order, schema)))


def _fields(
    path: Path, before: "Sequence[NestedField]", after: "Sequence[NestedField]"
) -> Iterator[Change]:
    earlier = {field.field_id: field for field in before}
    later = {field.field_id: field for field in after}
    for field_id, field in earlier.items():
        if field_id not in later:
            yield Change(
                "column dropped",
                dotted((*path, field.name)),
                before=str(column_type(field.field_type)),
            )
    for field_id, field in later.items():
        if field_id in earlier:
            yield from _field(path, earlier[field_id], field)
        else:
            yield Change(
                "column added",
                dotted((*path, field.name)),
                after=str(column_type(field.field_type)),
            )
    yield from _moves(path, earlier, later)


def _field(path: Path, before: "NestedField", after: "NestedField") -> Iterator[Change]:
    name = dotted((*path, after.name))
    if before.name != after.name:
        yield Change("column renamed", name, before.name, after.name)
    yield from _types((*path, after.name), before.field_type, after.field_type)
    if (before.doc or "") != (after.doc or ""):
        yield Change("comment changed", name, before.doc or "", after.doc or "")
    if before.required != after.required:
        yield Change("may be NULL" if before.required else "may not be NULL", name)


def _types(path: Path, before: "IcebergType", after: "IcebergType") -> Iterator[Change]:
    from pyiceberg.types import ListType, MapType, StructType

    if isinstance(before, StructType) and isinstance(after, StructType):
        yield from _fields(path, before.fields, after.fields)
    elif isinstance(before, ListType) and isinstance(after, ListType):
        yield from _types((*path, "element"), before.element_type, after.element_type)
    elif isinstance(before, MapType) and isinstance(after, MapType):
        yield from _types((*path, "key"), before.key_type, after.key_type)
        yield from _types((*path, "value"), before.value_type, after.value_type)
    elif before != after:
        # Iceberg only widens types.
        yield Change(
            "type widened", dotted(path), str(column_type(before)), str(column_type(after))
        )


def _moves(
    path: Path, earlier: "dict[int, NestedField]", later: "dict[int, NestedField]"
) -> Iterator[Change]:
    names = {str(field_id): field.name for field_id, field in later.items()}
    old_order = [str(field_id) for field_id in earlier if field_id in later]
    new_order = [str(field_id) for field_id in later if field_id in earlier]
    for moved, after in moves(old_order, new_order):
        yield Change(
            "column moved",
            dotted((*path, names[moved])),
            after=f"after {names[after]}" if after else "first",
        )
