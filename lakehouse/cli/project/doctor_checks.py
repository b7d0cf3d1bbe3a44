"""Checks of `lakehouse doctor`, one line each; starts no Spark, but contacts a remote one."""

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lakehouse.alerts.alert_routes import name_of, read_routes
from lakehouse.alerts.alerts_sensor import read_heartbeat
from lakehouse.alerts.sinks import FILE, FILE_NAME, LOG, check_url
from lakehouse.cli.call_context import tables_there
from lakehouse.cli.dev_processes.ui_address import running_dev
from lakehouse.cli.output.printing import count
from lakehouse.errors import LakehouseError, TableDamaged
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.catalog_file import (
    check_catalog_file,
    require_catalog_file,
    require_own_tables,
)
from lakehouse.iceberg.catalog.iceberg_release import IcebergRelease
from lakehouse.iceberg.frames.spark_errors import one_line
from lakehouse.iceberg.metadata.referenced_files import missing_files
from lakehouse.iceberg.metadata.unknown_commits import find_unknown_commits
from lakehouse.privacy.suppressed_people import read_audited
from lakehouse.settings import SAMPLES, Settings
from lakehouse.spark import jars, jvm
from lakehouse.spark.executor_archive import archive_file
from lakehouse.spark.jvm_class_archive import archive_path, archive_problem
from lakehouse.spark.session_configuration import driver_memory
from lakehouse.spark.spark_address import place_of, problem_of, require_master

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_FEED = "doctor"


def read_staged_object(settings: Settings) -> None:
    """Let the Spark Connect server read a staged object; raises what it lacks."""
    import pyarrow as pa
    from pyarrow import parquet

    from lakehouse.ingestion.staging.staged_rows import LocalRows, StagedRows, open_staging
    from lakehouse.spark.spark_session import open_session

    session = open_session(settings, Catalog.of(settings))
    staging, name = open_staging(settings), "0.parquet"
    settings.make_home()
    with tempfile.TemporaryDirectory(dir=settings.home) as folder:
        rows: StagedRows = LocalRows(Path(folder, "rows"))
        if staging:
            rows = staging.rows(_FEED, uuid4().hex)
        parquet.write_table(pa.table({"one": [1]}), Path(folder, name))
        rows.put(Path(folder, name), name)
        try:
            _read(settings, session, f"{rows.uri.rstrip('/')}/{name}", dict(rows.spark_options))
        finally:
            rows.remove(name)


def _read(
    settings: Settings, session: "SparkSession", uri: str, options: dict[str, str]
) -> None:
    try:
        session.read.options(**options).parquet(uri).collect()
    except Exception as error:
        raise LakehouseError(
            f"{place_of(settings.spark_remote or '')} cannot read {uri}, which was staged as"
            f" delivered rows are: {one_line(error).rstrip('.')}.",
            next_step="Give the server and its executors what they need to read there.",
        ) from error


def describe_python(settings: Settings) -> str:
    """Return which Python runs Spark's Python tasks; raises SetupError for a missing archive."""
    cluster = settings.cluster
    if not settings.spark_remote and not settings.is_on_cluster:
        return f"{cluster.executor_python or 'this Python'}, on this machine"
    if cluster.executor_archive:
        archive_file(settings, cluster.executor_archive)
        return f"that of each worker's PATH with {cluster.executor_archive}"
    if cluster.executor_python:
        return f"{cluster.executor_python} of each worker (LAKEHOUSE_EXECUTOR_PYTHON)"
    if settings.spark_remote:
        return "that of the Spark server"
    return f"{cluster.pyspark_python or 'python3'} of each worker"


PYTHON_VERSIONS = ((3, 11), (3, 14))
"""Supported versions: first included, last excluded."""
_LATE = timedelta(minutes=5)
"""Maximum age of the monitor's heartbeat, which is written every ten seconds."""
_REMOTE_SPARK = "not needed: Spark runs elsewhere"
_NAMES = {LOG: "the log", FILE: FILE_NAME}
NEEDED_BYTES = 2_000_000_000


@dataclass(frozen=True)
class Finding:
    """One line: the checked item, its result, its description and the next step."""

    name: str
    ok: bool
    found: str
    next_step: str = ""


def findings(settings: Settings) -> list[Finding]:
    """Run all checks in order of their dependencies."""
    checks: dict[str, Callable[[Settings], str]] = {
        "python": _python,
        "java": _java,
        "jars": _jars,
        "iceberg": _iceberg,
        "classes": _classes,
        "spark": _spark,
        "executors": describe_python,
        "deployment": _deployment,
        "project": _project,
        "home": _home,
        "catalog": _catalog,
        "tables": _table_files,
        "disk": _disk,
        "alerts": _alerts,
        "feeds": _feeds,
    }
    return [_look(name, look, settings) for name, look in checks.items()]


def _look(name: str, look: Callable[[Settings], str], settings: Settings) -> Finding:
    """Return the result of a check, or its error."""
    try:
        return Finding(name, ok=True, found=look(settings))
    except LakehouseError as error:
        return Finding(name, ok=False, found=error.args[0], next_step=error.next_step)
    except Exception as error:
        # Catalog errors depend on its kind and the network; continue with the other checks.
        return Finding(name, ok=False, found=f"{type(error).__name__}: {error}")


def _python(_: Settings) -> str:
    version = ".".join(map(str, sys.version_info[:3]))
    interpreter = f"{version} ({sys.executable})"
    first, end = PYTHON_VERSIONS
    if not first <= sys.version_info[:2] < end:
        raise LakehouseError(
            interpreter,
            next_step="Install Python 3.11, 3.12 or 3.13, and run `make clean setup`.",
        )
    return interpreter


def _project(settings: Settings) -> str:
    if settings.project_root is None and settings.definitions == SAMPLES:
        return "none in this folder or above it, so that of the sample pipelines"
    place = f" ({settings.project_root})" if settings.project_root else ""
    return f"{settings.definitions}{place}"


def _java(settings: Settings) -> str:
    if settings.spark_remote:
        return _REMOTE_SPARK
    chosen = jvm.find(settings)
    return f"Java {chosen.version}, from {chosen.source} ({chosen.home})"


def _jars(settings: Settings) -> str:
    if settings.spark_remote:
        return _REMOTE_SPARK
    problems = [
        problem
        for jar in jars.pinned(settings)
        if (problem := jars.problem(jar, jars.path(settings, jar)))
    ]
    if problems:
        raise LakehouseError(" ".join(problems), next_step=jars.NEXT_STEP)
    return f"{len(jars.pinned(settings))}, as pinned ({jars.jar_dir(settings)})"


def _iceberg(settings: Settings) -> str:
    described = IcebergRelease(settings.iceberg).describe()
    if settings.spark_remote:
        return f"{described} (as LAKEHOUSE_ICEBERG says of Spark elsewhere)"
    return f"{described} (a job of AWS has its own)" if settings.jobs else described


def _classes(settings: Settings) -> str:
    if settings.spark_remote:
        return _REMOTE_SPARK
    chosen = jvm.find(settings)
    problem = archive_problem(settings, chosen)
    if problem:
        return f"each start of Spark reads all of them ({problem}); `lakehouse setup` archives them"
    return f"archived ({archive_path(settings, chosen)})"


def _spark(settings: Settings) -> str:
    if settings.is_on_cluster:
        require_master(settings.spark_master)
        return f"{settings.spark_master} answers"
    if not settings.spark_remote:
        return f"in process: {settings.spark_master}, {driver_memory(settings)}"
    place, problem = place_of(settings.spark_remote), problem_of(settings.spark_remote)
    if problem:
        raise LakehouseError(
            f"{place} does not answer: {problem}",
            next_step=(
                "Start the Spark Connect server, or unset SPARK_REMOTE to run Spark in process."
            ),
        )
    read_staged_object(settings)
    return f"{place} answers, has what tables need, and reads what is staged"


def _deployment(settings: Settings) -> str:
    if settings.deployment == "local":
        return "local"
    import boto3

    place = (
        f"aws: s3://{settings.bucket},"
        f" {settings.endpoint_url or settings.region or 'no region'}"
    )
    if not settings.region:
        raise LakehouseError(place, next_step="Set AWS_REGION.")
    if boto3.Session().get_credentials() is None:
        raise LakehouseError(
            f"{place}, no AWS credentials",
            next_step="Set AWS_PROFILE, or run where a role is attached.",
        )
    return place


def _home(settings: Settings) -> str:
    home = settings.home
    nearest = _nearest(home)
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise LakehouseError(
            f"{home} cannot be written",
            next_step="Make it writable, or set LAKEHOUSE_HOME to a folder that is.",
        )
    if not home.exists():
        return f"{home}, made by the first run"
    require_own_tables(settings.home)
    _require_private(home)
    return str(home)


def _require_private(home: Path) -> None:
    """Raise if other users can read the home; they may traverse it to deliver to the inbox."""
    mode = home.stat().st_mode & 0o777
    if mode & 0o066:
        raise LakehouseError(
            f"{home} is open to other users (mode {mode:o})",
            next_step=f"Run `chmod -R go-rw {shlex.quote(str(home))}`.",
        )


def _catalog(settings: Settings) -> str:
    file = settings.home / "catalog.db"
    catalog = _opened(settings)
    if catalog is None:
        return "none yet; made by the first run"
    if settings.deployment == "local":
        check_catalog_file(file)
    kind = "Glue" if settings.deployment == "aws" else str(file)
    read_audited(settings)
    return f"{count(len(_tables_there(settings, catalog)), 'table')} ({kind})"


def _tables_there(settings: Settings, catalog: Catalog) -> list[str]:
    def read_declared() -> Iterable[str]:
        from lakehouse.project import load_project

        return load_project(settings).tables

    return tables_there(catalog, read_declared)


def _opened(settings: Settings) -> Catalog | None:
    """Return the catalog; None if neither a catalog nor tables exist. Creates nothing."""
    if settings.deployment == "local" and not (settings.home / "catalog.db").exists():
        require_catalog_file(settings.home / "catalog.db", settings.home / "warehouse")
        return None
    described = Catalog.of(settings)
    # The default of ten retries would take half a minute; PyIceberg passes the number unchanged.
    fewer: dict[str, Any] = {"glue.max-retries": 2}
    return replace(described, pyiceberg={**described.pyiceberg, **fewer})


def _table_files(settings: Settings) -> str:
    try:
        catalog = _opened(settings)
        names = _tables_there(settings, catalog) if catalog else []
    except Exception as error:
        # The line of the catalog shows the cause.
        raise LakehouseError("unknown, since the catalog cannot be read") from error
    if catalog is None or not names:
        return "none yet"
    damaged = list(filter(None, (_damage(catalog, name) for name in names)))
    if damaged:
        raise LakehouseError(
            " ".join(damaged),
            next_step="docs/operations.md shows how to restore them, under `Files are lost`.",
        )
    return f"all files of {count(len(names), 'table')} are there"


def _damage(catalog: Catalog, table: str) -> str:
    """Return missing files, or commits that the catalog does not know, as after a restore."""
    try:
        missing = missing_files(catalog, table)
    except TableDamaged as error:
        return str(error.args[0])
    if missing:
        return f"{table} misses {len(missing)} of its files, such as {missing[0]}."
    unknown = find_unknown_commits(catalog.load_for_files(table))
    return (
        f"{table} has commits that the catalog does not know, to {unknown}." if unknown else ""
    )


def _disk(settings: Settings) -> str:
    free_bytes = shutil.disk_usage(_nearest(settings.home)).free
    free = f"{free_bytes / 1e9:.1f} GB free"
    if free_bytes < NEEDED_BYTES:
        raise LakehouseError(free, next_step="Free some: Spark spills to the disk.")
    return free


def _alerts(settings: Settings) -> str:
    routes = read_routes(settings)
    for url in routes.urls:
        check_url(settings, url)
    dev, heartbeat, now = running_dev(settings), read_heartbeat(settings), datetime.now(UTC)
    last = f"last heartbeat {heartbeat.at:%Y-%m-%d %H:%MZ}" if heartbeat else "no heartbeat yet"
    monitor = f"by `lakehouse dev` at {dev.url}" if dev else "no monitor runs now"
    # `dev` sends alerts with its own environment, not with that of this command.
    sinks = (FILE, LOG, *map(name_of, routes.urls))
    if dev and heartbeat:
        sinks = heartbeat.recipients
    named = ", ".join(_NAMES.get(sink, sink) for sink in sinks)
    words = f"{last}, {monitor}; alerts go to: {named}"
    seen_at = [dev.started_at] if dev else []
    seen_at += [heartbeat.at] if heartbeat else []
    is_late = not seen_at or now - max(seen_at) > _LATE
    if is_late and (dev or settings.heartbeat_url):
        raise LakehouseError(
            words,
            next_step=(
                "No alerts are sent: start the sensor `alerts` in the UI if it is stopped, or"
                " stop `lakehouse dev`, and start it again."
            ),
        )
    return words


def _feeds(settings: Settings) -> str:
    """Check for stopped sensors and schedules of feeds with waiting files; creates no instance."""
    from lakehouse.ingestion.sensors.stopped_feeds import stopped_feeds
    from lakehouse.orchestration.runs.instance import open_instance
    from lakehouse.project import load_project

    if not settings.dagster_home.exists():
        return "none is stopped"
    feeds = load_project(settings).feeds.values()
    with open_instance(settings) as instance:
        stopped = stopped_feeds(instance, settings, feeds)
    if stopped:
        raise LakehouseError(
            "; ".join(stopped.values()),
            next_step=f"Start it in the UI, or run `lakehouse ingest {next(iter(stopped))}`.",
        )
    return "none is stopped while files wait"


def _nearest(path: Path) -> Path:
    """Return the path or its nearest existing parent folder."""
    return next(folder for folder in (path, *path.parents) if folder.exists())
