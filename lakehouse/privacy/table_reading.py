"""Some columns of a table read without a JVM, and the conditions and the texts of their values."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from lakehouse.errors import LakehouseError, TableDamaged
from lakehouse.iceberg.erasure.arrow_ids import INTEGERS, whole_numbers
from lakehouse.iceberg.metadata.named_files import all_manifests
from lakehouse.iceberg.metadata.scanned_batches import why_only_spark_reads
from lakehouse.tables.column import Column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

T = TypeVar("T")


def present_names(loaded: "Table", columns: Iterable[Column]) -> dict[str, str]:
    """Return what a table calls some of its declared columns now, by their declared names.

    It may have one under a former name, as long as a declared change waits; one that it has not
    yet is left out.
    """
    there = {field.name.lower(): field.name for field in loaded.schema().fields}
    present = {}
    for column in columns:
        former = [name.lower() for name in reversed(column.renamed_from)]
        found = [there[name] for name in (column.name.lower(), *former) if name in there]
        if found:
            present[column.name] = found[0]
    return present


def read_now(
    loaded: "Table", names: Sequence[str], condition: "BooleanExpression | None" = None
) -> "Iterator[pa.RecordBatch]":
    """Yield columns of the rows that readers see, those that a condition holds for.

    :raises LakehouseError: when a file of the table cannot be read without Spark.
    """
    from pyiceberg.expressions import AlwaysTrue

    scan = loaded.scan(row_filter=condition or AlwaysTrue(), selected_fields=tuple(names))
    yield from explained(loaded, lambda: scan.to_arrow_batch_reader())


def data_files(loaded: "Table") -> "Iterator[DataFile]":
    """Yield each data file that a snapshot of a table names, once."""
    from pyiceberg.manifest import ManifestContent

    files: set[str] = set()
    for manifest in all_manifests(loaded):
        if manifest.content is not ManifestContent.DATA:
            continue
        for entry in manifest.fetch_manifest_entry(loaded.io):
            if entry.data_file.file_path not in files:
                files.add(entry.data_file.file_path)
                yield entry.data_file


def among(loaded: "Table", name: str, texts: Iterable[str]) -> "BooleanExpression | None":
    """Return the condition that a column is one of some values, given as text; None where
    its type tells no value from such a text, so that each row has to be looked at.
    """
    from pyiceberg.expressions import AlwaysFalse, In

    kind = str(loaded.schema().find_field(name).field_type)
    values: list[Any] = []
    if kind == "string":
        values = sorted(texts)
    elif kind == "date":
        values = sorted(text for text in texts if _is_date(text))
    elif kind in INTEGERS:
        values = [*whole_numbers(texts, kind)]
    else:
        return None
    # mypy takes pydantic's fields for the arguments, and not PyIceberg's own constructor.
    return In(name, values) if values else AlwaysFalse()  # type: ignore[call-arg,arg-type]


def is_searchable(loaded: "Table", name: str) -> bool:
    """Whether rows can be told by a column without looking at each."""
    return among(loaded, name, ()) is not None


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def row_condition(
    loaded: "Table", texts: Mapping[str, Iterable[str]]
) -> "BooleanExpression | None":
    """Return the condition that any of some columns is one of its values; None where each row
    has to be looked at.

    :param texts: values as text, by what the table calls the column.
    """
    from pyiceberg.expressions import AlwaysFalse, Or

    condition: BooleanExpression = AlwaysFalse()
    for name, some in texts.items():
        one = among(loaded, name, some)
        if one is None:
            return None
        condition = Or(condition, one)
    return condition


def text_of(value: Any) -> str | None:
    """Return a value as Spark casts it to a string; None of NULL, and of what has parts."""
    if value is None or isinstance(value, Mapping | list):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    if isinstance(value, float) and value.is_integer():
        return f"{value:.1f}"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts of a value: its own, or those of its parts."""
    parts: Iterable[Any] = ()
    if isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, list | tuple):
        # A map is a list of pairs.
        parts = value
    else:
        text = text_of(value)
        if text is not None:
            yield text
    for part in parts:
        yield from texts_in(part)


def explained(loaded: "Table", read: Callable[[], Iterable[T]]) -> Iterator[T]:
    """Yield what is read of a table.

    :raises TableDamaged: where a file of it is missing.
    :raises LakehouseError: where one cannot be read without Spark.
    """
    name = ".".join(loaded.name())
    try:
        yield from read()
    except FileNotFoundError as error:
        raise TableDamaged(
            f"{name} is damaged: a data file of it is missing.",
            next_step="`lakehouse doctor` lists all that are missing.",
        ) from error
    except (ValueError, NotImplementedError) as error:
        # What PyIceberg says of it may quote a row.
        raise LakehouseError(
            f"{name} cannot be read without Spark:"
            f" {why_only_spark_reads(loaded) or type(error).__name__}; expected data files in"
            " Parquet or ORC, without equality deletes.",
            next_step="Declare file_format='parquet', or run upkeep for its delete files.",
        ) from None
