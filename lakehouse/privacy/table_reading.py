"""Some columns of a table read without a JVM, and the texts of their values."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from lakehouse.errors import LakehouseError, TableDamaged
from lakehouse.iceberg.erasure.arrow_ids import text_of
from lakehouse.iceberg.metadata.named_files import all_manifests
from lakehouse.iceberg.metadata.scanned_batches import why_only_spark_reads
from lakehouse.tables.column import Column

if TYPE_CHECKING:
    import pyarrow as pa
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


def read_now(loaded: "Table", names: Sequence[str]) -> "Iterator[pa.RecordBatch]":
    """Yield columns of the rows that readers see.

    :raises LakehouseError: when a file of the table cannot be read without Spark.
    """
    scan = loaded.scan(selected_fields=tuple(names))
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
