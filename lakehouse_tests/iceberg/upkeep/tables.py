"""Tables that need upkeep, and small ways to look at them."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlparse

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.manifests import files

NAME = "silver.sick"
TARGET_BYTES = 128 * 1024**2
MERGE_ON_READ = {
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
}


def create(
    engine: Engine,
    columns: str,
    partitioning: str = "",
    properties: dict[str, str] | None = None,
    name: str = NAME,
) -> str:
    """Create a table, and return its name in SQL."""
    namespace = name.split(".")[0]
    engine.sql(f"CREATE NAMESPACE IF NOT EXISTS {engine.catalog.name}.{namespace}")
    in_sql = engine.catalog.sql_name(name)
    # Rows go to as many files as the statement says, not to one for each partition.
    given = {"format-version": "2", "write.distribution-mode": "none", **(properties or {})}
    pairs = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    partitioned = f"PARTITIONED BY ({partitioning})" if partitioning else ""
    engine.sql(
        f"CREATE TABLE {in_sql} ({columns}) USING iceberg {partitioned} TBLPROPERTIES ({pairs})"
    )
    return in_sql


def rows(engine: Engine, version: str = "", name: str = NAME) -> list[tuple[object, ...]]:
    """Return a table's rows, sorted; `version` is such as `VERSION AS OF 'month_end'`."""
    frame = engine.sql(f"SELECT * FROM {engine.catalog.sql_name(name)} {version}")
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def contents(engine: Engine, name: str = NAME) -> list[str]:
    """Return what each file of a table holds: `data` or kinds of deletes, sorted."""
    return sorted(file.content for file in files(engine, name))


def size_bytes(engine: Engine, name: str = NAME) -> int:
    return sum(file.size_bytes for file in files(engine, name))


def stored(engine: Engine, name: str = NAME) -> set[Path]:
    """Return the files in a table's folder, Hadoop's checksums left out."""
    folder = local_path(engine.catalog.load(name).location())
    there = (path for path in folder.rglob("*") if path.is_file())
    return {path for path in there if path.suffix != ".crc"}


def local_path(location: str) -> Path:
    parsed = urlparse(location)
    assert parsed.scheme in ("", "file"), f"{location} is in no folder; mark on_embedded_alone"
    return Path(parsed.path)


def put_orphan(engine: Engine, file: str, *, days_old: float, name: str = NAME) -> Path:
    """Leave a file in a table's folder that no metadata names."""
    path = local_path(engine.catalog.load(name).location()) / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"left behind")
    make_older(path, days_old)
    return path


def make_older(path: Path, days: float) -> None:
    at = time.time() - days * 86_400
    os.utime(path, (at, at))


def make_older_on_s3(path: str, days: float) -> None:
    from moto.backends import get_backend

    (backend,) = (regions["aws"] for regions in get_backend("s3").values())
    key = backend.buckets["lake"].keys[path.removeprefix("s3://lake/")]
    key.last_modified = datetime.now() - timedelta(days=days)


@contextmanager
def undeletable(path: Path) -> Iterator[None]:
    """Keep a file from being deleted, also by root, whom permissions do not stop."""
    if os.geteuid() == 0:
        kept = subprocess.run(["chattr", "+i", path], check=False, capture_output=True)
        if kept.returncode:
            pytest.skip("This file system keeps no file from root; ext4 and xfs do.")
        try:
            yield
        finally:
            subprocess.run(["chattr", "-i", path], check=True)
        return
    mode = path.parent.stat().st_mode
    path.parent.chmod(0o500)
    try:
        yield
    finally:
        path.parent.chmod(mode)
