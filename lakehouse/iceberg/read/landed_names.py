"""Under which names a content has landed in a bronze table, where that can be told by a look into
few files.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.engine import Engine

if TYPE_CHECKING:
    from pyiceberg.table import DataScan

_MOST_FILES = 20
_COLUMNS = ("_source_file", "_source_sha256")


def landed_names(engine: Engine, table: str, hashes: Collection[str]) -> dict[str, set[str]]:
    """Return, by the SHA-256 of a content, the names of the files that it has landed in.

    Data files are left out by their statistics. Where more than a few are left, or one cannot be
    read without Spark, nothing is returned: it is told to help, and worth no more.
    """
    import pyarrow as pa
    from pyiceberg.expressions import In

    if not hashes or not engine.catalog.has(table):
        return {}
    loaded = engine.catalog.load(table)
    # mypy takes pydantic's fields for the arguments, and not PyIceberg's own constructor.
    wanted = In("_source_sha256", set(hashes))  # type: ignore[call-arg,arg-type]
    scan = loaded.scan(row_filter=wanted, selected_fields=_COLUMNS)
    if not _is_quickly_read(scan):
        return {}
    names: dict[str, set[str]] = {}
    for batch in scan.to_arrow_batch_reader():
        for row in pa.table(batch).group_by(list(_COLUMNS)).aggregate([]).to_pylist():
            names.setdefault(row["_source_sha256"], set()).add(row["_source_file"])
    return names


def _is_quickly_read(scan: "DataScan") -> bool:
    from pyiceberg.manifest import DataFileContent, FileFormat

    tasks = list(scan.plan_files())
    for task in tasks:
        deletes = {file.content for file in task.delete_files}
        if (
            task.file.file_format != FileFormat.PARQUET
            or DataFileContent.EQUALITY_DELETES in deletes
        ):
            return False
    return len(tasks) <= _MOST_FILES
