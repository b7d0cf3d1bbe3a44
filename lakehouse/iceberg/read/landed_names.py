"""File names under which a content landed in a bronze table; no Spark."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.engine import Engine

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask

_MOST_FILES = 20
_COLUMNS = ("_source_file", "_source_sha256", "_ingested_at")


def landed_names(
    engine: Engine, table: str, hashes: Collection[str]
) -> dict[str, dict[str, datetime]]:
    """Return the names and ingestion times of landed files by the SHA-256 of their content.

    Empty if more than a few files must be read, or only Spark reads one: it is only a hint.
    """
    import pyarrow as pa
    from pyiceberg.expressions import In

    if not hashes or not engine.catalog.has(table):
        return {}
    loaded = engine.catalog.load(table)
    # mypy sees pydantic's fields instead of PyIceberg's constructor.
    row_filter = In("_source_sha256", set(hashes))  # type: ignore[call-arg,arg-type]
    scan = loaded.scan(row_filter=row_filter, selected_fields=_COLUMNS)
    tasks = list(scan.plan_files())
    if len(tasks) > _MOST_FILES or not _is_read_without_spark(tasks):
        return {}
    names: dict[str, dict[str, datetime]] = {}
    for batch in scan.to_arrow_batch_reader():
        landings = pa.table(batch).group_by(list(_COLUMNS)).aggregate([])
        for row in landings.to_pylist():
            known = names.setdefault(row["_source_sha256"], {})
            name, at = row["_source_file"], row["_ingested_at"]
            known[name] = max(at, known.get(name, at))
    return names


def has_newer_content(
    engine: Engine, table: str, source_file: str, sha256: str, landed_at: datetime
) -> bool:
    """Whether other content has landed under a file name since.

    Only a few candidate data files are checked; False if they do not contain it.
    """
    from pyiceberg.expressions import And, EqualTo, GreaterThan, NotEqualTo
    from pyiceberg.io.pyarrow import ArrowScan

    loaded = engine.catalog.load(table)
    # As above, mypy does not see PyIceberg's constructors.
    is_named = EqualTo("_source_file", source_file)  # type: ignore[call-arg,arg-type]
    is_another = NotEqualTo("_source_sha256", sha256)  # type: ignore[call-arg,arg-type]
    is_newer = GreaterThan("_ingested_at", landed_at.isoformat())  # type: ignore[call-arg,arg-type]
    row_filter = And(is_named, is_another, is_newer)
    scan = loaded.scan(row_filter=row_filter, selected_fields=_COLUMNS)
    tasks = list(scan.plan_files())[:_MOST_FILES]
    if not _is_read_without_spark(tasks):
        return False
    reader = ArrowScan(loaded.metadata, loaded.io, scan.projection(), row_filter, limit=1)
    # One file at a time: the first one is usually sufficient, and a scan would start with all
    # files.
    return any(reader.to_table([task]).num_rows for task in tasks)


def _is_read_without_spark(tasks: "Sequence[FileScanTask]") -> bool:
    from pyiceberg.manifest import DataFileContent, FileFormat

    for task in tasks:
        deletes = {file.content for file in task.delete_files}
        if (
            task.file.file_format != FileFormat.PARQUET
            or DataFileContent.EQUALITY_DELETES in deletes
        ):
            return False
    return True
