"""Row predicates for partitions, which skip the files of other partitions.

The `where` of Iceberg's procedures is a row predicate over columns and Iceberg's functions, not
over partition fields. Iceberg projects it onto each spec. Time ranges and equality skip files
of every spec with the same source column; bucket and truncate only those of a spec with the
same transform. Therefore files of other specs are selected too if their rows can be in the
partition.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.column_types import column_type
from lakehouse.iceberg.metadata.measured_health import PartitionKey
from lakehouse.iceberg.upkeep.column_ranges import ColumnRange
from lakehouse.tables.partitioning import PartitionField
from lakehouse.tables.quoting import identifier, literal, typed

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionField as IcebergPartitionField
    from pyiceberg.table import Table
    from pyiceberg.types import NestedField

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def partitions_predicate(catalog: str, table: "Table", keys: Iterable[PartitionKey]) -> str:
    """Return the predicate of the rows in some partitions, in Spark SQL; empty for all rows.

    :param catalog: its name in Spark, for Iceberg's functions.
    """
    predicates = [partition_predicate(catalog, table, key) for key in keys]
    if not all(predicates):
        return ""
    # Deduplicated in order: two specs can select the same rows.
    return " OR ".join(dict.fromkeys(f"({predicate})" for predicate in predicates))


def range_predicate(table: "Table", within: ColumnRange) -> str:
    """Return the predicate of the rows in a value range, in Spark SQL."""
    declared = str(column_type(table.schema().find_field(within.column).field_type))
    column = identifier(within.column)
    low, high = _typed(within.low, declared), _typed(within.high, declared)
    return f"{column} >= {low} AND {column} <= {high}"


def partition_predicate(catalog: str, table: "Table", key: PartitionKey) -> str:
    """Return the predicate of the rows in one partition; empty if its spec has no field."""
    spec = table.specs()[key.spec_id]
    transforms = {field.name: field for field in spec.fields}
    terms = []
    for name, value in key.values:
        field = transforms[name]
        column = table.schema().find_column_name(field.source_id)
        # The source column of an old spec can have been dropped.
        term = PartitionField.of_metadata(str(field.transform), column) if column else None
        if term is not None and not _misleads(table, field):
            declared = str(column_type(table.schema().find_field(field.source_id).field_type))
            quoted = _quoted_column(table, field.source_id)
            terms.append(_term_predicate(catalog, term, quoted, declared, value))
    return " AND ".join(terms)


def _quoted_column(table: "Table", column_id: int) -> str:
    """Return the quoted name of a column or nested field; a name can contain dots."""
    return identifier(*_path(table.schema().fields, column_id))


def _path(fields: "Iterable[NestedField]", field_id: int) -> tuple[str, ...]:
    """Return the path to a field; empty if it does not exist."""
    from pyiceberg.types import StructType

    for field in fields:
        if field.field_id == field_id:
            return (field.name,)
        if isinstance(field.field_type, StructType):
            inner = _path(field.field_type.fields, field_id)
            if inner:
                return (field.name, *inner)
    return ()


def _misleads(table: "Table", field: "IcebergPartitionField") -> bool:
    """Whether Iceberg confuses a field's value with its column's: if another spec has the
    column itself, it fails or finds nothing (`Identity.project` in 1.12).
    """
    if not str(field.transform).startswith(("bucket", "truncate")):
        return False
    other_fields = (other for spec in table.specs().values() for other in spec.fields)
    return any(
        str(other.transform) == "identity" and other.source_id == field.source_id
        for other in other_fields
    )


def _term_predicate(
    catalog: str, field: PartitionField, column: str, declared: str, value: Any
) -> str:
    if value is None:
        return f"{column} IS NULL"
    if field.transform in ("bucket", "truncate"):
        function = identifier(catalog, "system", field.transform)
        return f"{function}({field.width}, {column}) = {literal(value)}"
    if field.transform == "identity":
        return f"{column} = {_typed(value, declared)}"
    if isinstance(value, date):
        value = (value - _EPOCH.date()).days
    start, end = _start_time(field.transform, value), _start_time(field.transform, value + 1)
    bounds = [f"{column} >= {_typed(start, declared)}"] if start else []
    bounds += [f"{column} < {_typed(end, declared)}"] if end else []
    return " AND ".join(bounds)


def _start_time(transform: str, number: int) -> datetime | None:
    """Return the start of a time partition, by its number since 1970; None outside of Python's
    range, as after 9999-12-31.
    """
    try:
        if transform in ("hours", "days"):
            return _EPOCH + timedelta(**{transform: number})
        year, month = divmod(number * 12 if transform == "years" else number, 12)
        return datetime(1970 + year, month + 1, 1, tzinfo=UTC)
    except (OverflowError, ValueError):
        return None


def _typed(value: Any, declared: str) -> str:
    """Format a value in the type of its column; for a date column, the day of a timestamp."""
    if declared == "date" and isinstance(value, datetime):
        value = value.date()
    return typed(value, declared)
