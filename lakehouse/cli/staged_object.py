"""Doctor check: a Spark Connect server reads a small staged object."""

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.spark_errors import one_line
from lakehouse.runtime.connect_server import lacking
from lakehouse.runtime.spark_address import place_of
from lakehouse.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FEED = "doctor"
_NO_FILE_SYSTEM = re.compile(r"No FileSystem for scheme|S3AFileSystem not found")


def read_staged_object(settings: Settings) -> None:
    """Let the Spark Connect server read a staged object; raises what it lacks."""
    from lakehouse.ingestion.staged_rows import LocalRows, StagedRows, open_staging
    from lakehouse.runtime.spark import open_session

    session = open_session(settings, Catalog.of(settings))
    staging, name = open_staging(settings), "0.parquet"
    settings.make_home()
    with tempfile.TemporaryDirectory(dir=settings.home) as folder:
        rows: StagedRows = LocalRows(Path(folder, "rows"))
        if staging:
            rows = staging.rows(_FEED, uuid4().hex)
        rows.put(_write(Path(folder, name)), name)
        try:
            _read(settings, session, f"{rows.uri.rstrip('/')}/{name}", dict(rows.spark_options))
        finally:
            rows.remove(name)


def _write(file: Path) -> Path:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"one": [1]}), file)
    return file


def _read(
    settings: Settings, session: "SparkSession", uri: str, options: dict[str, str]
) -> None:
    try:
        session.read.options(**options).parquet(uri).collect()
    except Exception as error:
        if _NO_FILE_SYSTEM.search(str(error)):
            what = (
                "a file system for s3:// (spark.hadoop.fs.s3.impl, and the jar of hadoop-aws)"
            )
            raise lacking(settings, what) from error
        raise LakehouseError(
            f"{place_of(settings.spark_remote or '')} cannot read {uri}, which was staged as"
            f" delivered rows are: {one_line(error).rstrip('.')}.",
            next_step="Give the server and its executors what they need to read there.",
        ) from error
