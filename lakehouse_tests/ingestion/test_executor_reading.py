"""What executors read: as one machine reads it, and only where that is worth it."""

import gzip
import hashlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import boto3
import pyarrow as pa
import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from lakehouse.iceberg.erasure.suppression_list import SuppressionList
from lakehouse.ingestion.collect import collect_files
from lakehouse.ingestion.collected_files import Delivery
from lakehouse.ingestion.feed_lock import lock_feed
from lakehouse.ingestion.staging.executor_reading import ExecutorReading, Reading, plan_groups
from lakehouse.ingestion.staging.executor_task import ExecutorTask, FileOutcome, NumberedFile
from lakehouse.ingestion.staging.staged_files import FileConverter
from lakehouse.ingestion.staging.staged_rows import open_staging
from lakehouse.ingestion.suppressed_rows import SuppressedRows
from lakehouse.spark.executor_archive import archive_file
from lakehouse.spark.project_code import package_zip
from lakehouse.storage import s3
from lakehouse.storage.object_store import StoredObject
from lakehouse.tables.feed import Feed, FeedColumn
from lakehouse_tests.conftest import on_aws
from lakehouse_tests.denying_s3 import denying_s3
from lakehouse_tests.ingestion.conftest import CUSTOMERS, FRUITS, staged_rows
from lakehouse_tests.ingestion.test_formats import FILES, format_of

APPLE = "id,fruit,berry\n1,Apple,false\n"
NOW = datetime(2026, 11, 26, tzinfo=UTC)
MB = 1 << 20
FOREIGN = """
import pickle, sys
INSTALLED = {*sys.stdlib_module_names, "lakehouse", "pyarrow", "numpy"}

class Refuse:
    def find_spec(self, name, path=None, target=None):
        # Python's own modules with data of the platform are not listed.
        if name.partition(".")[0] not in INSTALLED and not name.startswith("_"):
            raise ImportError(name)

sys.meta_path.insert(0, Refuse())
sys.path.insert(0, sys.argv[1])
import pyarrow
with open(sys.argv[2], "rb") as file:
    task = pickle.load(file)
(found,) = task.read([pyarrow.RecordBatch.from_pydict({"id": [0]})])
print(found.column(0)[0].as_py(), sys.modules["lakehouse"].__file__)
"""


class HereReading(ExecutorReading):
    def read(self, task: ExecutorTask) -> Reading:
        given = pickle.loads(pickle.dumps(task))
        outcomes = []
        for number in range(len(given.groups)):
            (batch,) = given.read([pa.RecordBatch.from_pydict({"id": [number]})])
            outcomes += [FileOutcome.from_json(text) for text in batch.column(0).to_pylist()]
        return Reading(tuple(outcomes))


@dataclass(frozen=True)
class AnnIsErased:
    key: bytes | None = None
    erased_at: Mapping[bytes, datetime] = field(default_factory=lambda: {b"7": NOW})

    def erasure_time(self, names: Iterable[str], value: str) -> datetime | None:
        return NOW if value == "7" else None


def no_session():
    raise AssertionError("Spark was asked for")


def reading(when: str = "always", *, is_elsewhere: bool = True) -> HereReading:
    return HereReading(no_session, when, is_elsewhere, Path)


UNUSED = ExecutorReading(no_session, "always", True, Path)


def file(number: int, size_bytes: int) -> NumberedFile:
    return NumberedFile(number, StoredObject(f"inbox/f/{number}", NOW, size_bytes, ""))


def task_of(store, ingest, groups=()) -> ExecutorTask:
    converter = FileConverter(store, FRUITS, NOW, SuppressedRows(FRUITS))
    return ExecutorTask(converter, ingest.rows, groups)


def told(delivery: Delivery) -> list[tuple]:
    landed = [
        (file.source_file, file.sha256, file.rows, file.added_columns)
        for file in delivery.files
    ]
    rejected = [(file.source_file, file.sha256, str(file.why)) for file in delivery.rejected]
    return [*landed, *rejected]


@pytest.mark.parametrize(
    ("when", "is_elsewhere", "sizes", "is_worth"),
    [
        ("auto", True, [256 * MB], True),
        ("auto", True, [256 * MB - 1], False),
        ("auto", True, [1] * 200, True),
        ("auto", True, [1] * 199, False),
        ("auto", False, [1 << 40], False),
        ("always", False, [1], True),
        ("always", True, [], False),
        ("never", True, [1 << 40], False),
    ],
)
def test_many_or_large_files_are_read_by_executors(when, is_elsewhere, sizes, is_worth) -> None:
    assert reading(when, is_elsewhere=is_elsewhere).is_worth(sizes) is is_worth


def test_a_task_has_64_mb_or_100_files_or_one_that_is_larger() -> None:
    large, fitting, small = [65 * MB, 200 * MB], [40 * MB, 30 * MB, 24 * MB], [1] * 150
    files = [file(number, size) for number, size in enumerate([*small, *fitting, *large])]

    groups = plan_groups(files)

    sizes = [[file.stored.size_bytes for file in group] for group in groups]
    assert sizes[:2] == [[200 * MB], [65 * MB]]
    assert sizes[2] == [40 * MB]
    assert [sum(group) for group in sizes[3:]] == [54 * MB + 98, 52]
    assert sorted(file.number for group in groups for file in group) == list(range(155))


def test_they_stage_and_reject_as_one_machine_does(home, inbox_of) -> None:
    feed = replace(FRUITS, on_new_column="add")
    inbox = inbox_of(feed)
    packed = gzip.compress(b"id,fruit,berry,color\n2,Fig,true,blue\n", mtime=0)

    def deliver() -> None:
        inbox.put("a.csv", APPLE, second=1)
        inbox.put("b.csv.gz", packed, second=2)
        inbox.put("short.csv", "id,fruit,berry\n1,Apple,false\n1,Pear\n", second=3)
        inbox.put("empty.csv", "", second=4)
        inbox.put("no-feed.txt", APPLE, second=5)

    found = []
    for executors in (None, reading()):
        deliver()
        with lock_feed(feed, home) as ingest:
            delivery = collect_files(inbox.store, ingest, executors=executors)
            rows = staged_rows(delivery)
            for row in rows:
                del row["_ingested_at"]
            found.append((told(delivery), rows))
        for name in inbox.names():
            (inbox.store.root / feed.inbox / name).unlink()

    assert found[0] == found[1]
    assert len(found[0][0]) == 5


def test_once_somebody_was_erased_the_driver_reads(home, inbox_of) -> None:
    """The key by which the erased are known leaves it for nobody, and it rewrites such files."""
    inbox = inbox_of(CUSTOMERS)
    inbox.put("a.csv", "customer_id,email\n7,ann@example.com\n8,bob@example.com\n", second=1)
    inbox.put("b.csv", "customer_id,email\n9,cy@example.com\n", second=2)

    with lock_feed(CUSTOMERS, home) as ingest:
        erased = SuppressionList(AnnIsErased)
        delivery = collect_files(inbox.store, ingest, suppression=erased, executors=UNUSED)
        rows = staged_rows(delivery)

    assert [row["customer_id"] for row in rows] == ["8", "9"]
    assert [file.suppressed_rows for file in delivery.files] == [1, 0]


def test_of_a_file_that_changed_no_rows_are_put_there(home, inbox, tmp_path) -> None:
    path = inbox.put("a.csv", APPLE)
    (stored,) = inbox.store.objects(FRUITS.inbox)
    path.write_text(APPLE + "2,Fig,true\n", encoding="utf-8")

    with lock_feed(FRUITS, home) as ingest:
        outcome = task_of(inbox.store, ingest).stage(NumberedFile(0, stored), tmp_path)
        assert list((ingest.staging / "rows").iterdir()) == []

    assert (outcome.converted, outcome.rejected) == (None, None)


def test_they_read_of_a_bucket_and_stage_in_it(
    aws_settings, home, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    bucket = open_staging(aws_settings)
    bucket.store.write_text(f"{FRUITS.inbox}a.csv", APPLE)
    sha256 = hashlib.sha256(APPLE.encode()).hexdigest()

    with lock_feed(FRUITS, home, bucket=bucket) as ingest:
        collect_files(bucket.store, ingest, executors=reading())
        (version,) = bucket.store.all_versions("staging/")
        assert version.key.endswith(f"/{sha256}-000000-executor.parquet")

    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_one_without_credentials_says_so_before_files_are_read(
    aws_settings, home, monkeypatch
) -> None:
    bucket = open_staging(aws_settings)
    with lock_feed(FRUITS, home, bucket=bucket) as ingest:
        task = pickle.dumps(task_of(bucket.store, ingest, [[file(0, 1)]]))

    assert pickle.loads(task).problem(0) == ""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    s3._open_again.cache_clear()
    assert pickle.loads(task).problem(0) == "Unable to locate credentials"
    s3._open_again.cache_clear()


def test_an_executor_needs_this_package_and_pyarrow_alone(
    home, inbox, tmp_path, settings
) -> None:
    inbox.put("a.csv", APPLE)
    files = [NumberedFile(0, item) for item in inbox.store.objects(FRUITS.inbox)]
    package = package_zip(replace(settings, cache_dir=tmp_path / "cache"))
    given, elsewhere = tmp_path / "task", tmp_path / "elsewhere"
    elsewhere.mkdir()

    with lock_feed(FRUITS, home) as ingest:
        given.write_bytes(pickle.dumps(task_of(inbox.store, ingest, (files,))))
        told = subprocess.run(
            [sys.executable, "-c", FOREIGN, str(package), str(given)],
            cwd=elsewhere,
            env={**os.environ, "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert f'"converted": ["{hashlib.sha256(APPLE.encode()).hexdigest()}", 1' in told
    assert str(package) in told


def test_what_executors_cannot_be_sent_a_python_for_the_driver_reads(
    home, inbox, settings
) -> None:
    inbox.put("a.csv", APPLE)
    with lock_feed(FRUITS, home) as ingest, denying_s3() as address:
        refused = replace(on_aws(settings), endpoint_url=address)
        executors = ExecutorReading(
            object,
            "always",
            True,
            Path,
            lambda _: archive_file(refused, "s3://lake/env.tar.gz"),
        )
        delivery = collect_files(inbox.store, ingest, executors=executors)

    assert delivery.rows == 1
    (said,) = delivery.warnings
    assert said.startswith("The driver read the files, since executors cannot: LAKEHOUSE_")
    assert said.endswith("Create it with `lakehouse pack-python`.")


def test_where_spark_ends_while_they_read_the_driver_does_not_begin(home, inbox) -> None:
    class Ended:
        conf: ClassVar = {"spark.master": "spark://master:7077"}

        def addArtifacts(self, *_: str, **__: bool) -> None:  # noqa: N802
            """Take the package."""

        sparkContext = SimpleNamespace(addPyFile=lambda _: None)  # noqa: N815

        def range(self, *_: int) -> None:
            raise SparkConnectGrpcException("status = StatusCode.UNAVAILABLE")

    inbox.put("a.csv", APPLE)
    executors = ExecutorReading(Ended, "always", True, Path)
    with lock_feed(FRUITS, home) as ingest, pytest.raises(SparkConnectGrpcException):
        collect_files(inbox.store, ingest, executors=executors)


@pytest.fixture
def spark_reading(spark, settings) -> Callable[[str], ExecutorReading]:
    name = "spark.sql.execution.pyspark.python"

    def reading(python: str) -> ExecutorReading:
        spark.conf.set(name, python)
        return ExecutorReading(lambda: spark, "always", False, lambda: package_zip(settings))

    yield reading
    spark.conf.unset(name)


def test_tasks_of_spark_stage_files_of_each_format(spark_reading, home, inbox_of) -> None:
    columns = [FeedColumn("id", type="bigint"), "name"]
    feed = Feed("rows", columns, "bronze.rows", formats=[*map(format_of, FILES)])
    inbox = inbox_of(feed)
    for number, (name, content) in enumerate(FILES.items()):
        inbox.put(f"{number}.{format_of(name)}", content, second=number)
        inbox.put(f"cut-{number}.{format_of(name)}", content[:-5], second=number)

    with lock_feed(feed, home) as ingest:
        delivery = collect_files(inbox.store, ingest, executors=spark_reading(sys.executable))
        rows = staged_rows(delivery)

    assert (delivery.remark, delivery.warnings) == ("", [])
    assert [(row["id"], row["name"]) for row in rows] == [
        (number, f"n{number}") for _ in FILES for number in (1, 2, 3)
    ]
    assert len(delivery.rejected) == len(FILES)


def test_where_a_task_fails_though_one_could_read_the_driver_reads_and_says_so(
    spark_reading, home, inbox
) -> None:
    """Such as on a worker that lacks what the one that was asked has."""
    inbox.put("a.csv", APPLE)
    files = [NumberedFile(0, item) for item in inbox.store.objects(FRUITS.inbox)]
    sha256 = hashlib.sha256(APPLE.encode()).hexdigest()

    with lock_feed(FRUITS, home) as ingest:
        (ingest.staging / "rows" / f"{sha256}-000000-executor.parquet").mkdir()
        reading = spark_reading(sys.executable).read(task_of(inbox.store, ingest, [files]))

    assert reading.outcomes == ()
    assert reading.remark.startswith("The driver read the files, since executors cannot: ")
    assert "IsADirectoryError" in reading.remark


def test_where_executors_have_no_python_the_driver_reads_and_says_so(
    spark_reading, home, inbox
) -> None:
    inbox.put("a.csv", APPLE)

    with lock_feed(FRUITS, home) as ingest:
        delivery = collect_files(inbox.store, ingest, executors=spark_reading("/no/python"))

    assert len(delivery.files) == 1
    (warning,) = delivery.warnings
    assert "/no/python" in warning
    assert "LAKEHOUSE_EXECUTOR_PYTHON" in warning
