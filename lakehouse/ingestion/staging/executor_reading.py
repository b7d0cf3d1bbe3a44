"""Read delivered files on Spark executors, if they are many or large."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.errors import SetupError
from lakehouse.iceberg.frames.spark_errors import has_spark_exited, one_line
from lakehouse.ingestion.staging.executor_task import (
    SCHEMA,
    ExecutorTask,
    FileOutcome,
    NumberedFile,
)
from lakehouse.settings import Settings
from lakehouse.settings.cluster_settings import When
from lakehouse.spark.executor_configuration import send_archive
from lakehouse.spark.executors import master_of
from lakehouse.spark.project_code import package_zip, send_zip

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

LEAST_BYTES = 256 << 20
LEAST_FILES = 200
"""Above either limit, executors are worth their start time of a few seconds."""
_GROUP_BYTES = 64 << 20
_GROUP_FILES = 100


@dataclass(frozen=True)
class ExecutorReading:
    """When executors read delivered files: `always`, `never`, or `auto` (large batches on a
    cluster).
    """

    session: "Callable[[], SparkSession]"
    when: When
    is_distributed: bool
    """Whether Spark also runs on other machines."""
    package: Callable[[], Path]
    send_python: "Callable[[SparkSession], None]" = lambda _: None
    """Sends the configured Python environment to the executors, if needed."""

    def is_worth(self, sizes: Sequence[int]) -> bool:
        if self.when != "auto":
            return self.when == "always" and bool(sizes)
        is_much = sum(sizes) >= LEAST_BYTES or len(sizes) >= LEAST_FILES
        return self.is_distributed and is_much

    def read(self, task: ExecutorTask) -> "Reading":
        """Read files on the executors; files that they cannot read have no outcome."""
        session = self.session()
        if self.when == "auto" and master_of(session).startswith("local"):
            return Reading()
        try:
            self.send_python(session)
        except SetupError as error:
            return Reading(remark=f"The driver read the files, since executors cannot: {error}")
        send_zip(session, self.package())
        return _outcomes(session, task)


@dataclass(frozen=True)
class Reading:
    """The outcomes of files read on executors, and a message if some were not readable there."""

    outcomes: Sequence[FileOutcome] = ()
    remark: str = ""


def executor_reading(
    settings: Settings, session: "Callable[[], SparkSession]"
) -> ExecutorReading:
    """Return how the settings configure reading on executors."""
    return ExecutorReading(
        session,
        settings.cluster.executors_read,
        settings.is_on_cluster or settings.spark_remote is not None,
        lambda: package_zip(settings),
        lambda opened: send_archive(opened, settings),
    )


def plan_groups(files: Iterable[NumberedFile]) -> list[list[NumberedFile]]:
    """Group files into tasks, largest first: up to 64 MB or 100 files, or one larger file."""
    groups: list[list[NumberedFile]] = []
    group_bytes = 0
    for file in sorted(files, key=lambda file: (-file.stored.size_bytes, file.number)):
        size_bytes = file.stored.size_bytes
        is_full = group_bytes + size_bytes > _GROUP_BYTES
        if not groups or is_full or len(groups[-1]) == _GROUP_FILES:
            groups.append([])
            group_bytes = 0
        groups[-1].append(file)
        group_bytes += size_bytes
    return groups


def _outcomes(session: "SparkSession", task: ExecutorTask) -> Reading:
    """Read all groups. If a task reports a problem (for example, a worker without a package),
    its files have no outcome; if the job fails, none have.

    Each task checks its environment before reading. A separate check job took seconds, during
    which the other executors were idle.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    def read(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        return task.read(batches)

    # One partition per number, so one task per group.
    groups = len(task.groups)
    try:
        rows = session.range(0, groups, 1, groups).mapInArrow(read, SCHEMA).collect()
    except (PySparkException, Py4JError) as error:
        if has_spark_exited(error):
            # The driver could not land what it reads.
            raise
        return Reading(remark=_cannot(one_line(error).rstrip(".")))
    outcomes = [FileOutcome.from_json(row["outcome"]) for row in rows if not row["is_problem"]]
    problems = [row["outcome"] for row in rows if row["is_problem"]]
    which = "some of the files" if outcomes else "the files"
    return Reading(outcomes, _cannot(problems[0], which) if problems else "")


def _cannot(problem: str, which: str = "the files") -> str:
    return (
        f"The driver read {which}, since executors cannot: {problem}. Name a Python that they"
        " have, of the driver's minor version and with pyarrow, numpy and boto3, by"
        " LAKEHOUSE_EXECUTOR_PYTHON, send one without these its packages by"
        " LAKEHOUSE_EXECUTOR_ARCHIVE, or set LAKEHOUSE_EXECUTORS_READ to never."
    )
