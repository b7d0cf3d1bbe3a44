"""The executor side of file reading: check and stage files with the same reader as the driver.

An executor needs only this package, pyarrow, numpy, fastavro and cramjam for Avro, and boto3
for files in a bucket.
"""

import importlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from lakehouse.errors import FileRejected
from lakehouse.ingestion.staging.staged_files import Converted, FileConverter
from lakehouse.ingestion.staging.staged_rows import BucketRows, LocalRows, StagedRows
from lakehouse.storage.object_store import StoredObject

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "outcome string, is_problem boolean"
"""One row per file: its outcome as JSON, or the reason why a task cannot read any."""
_AT_ONCE = 4
"""Small files read concurrently by a task, which mostly waits for S3."""


@dataclass(frozen=True)
class NumberedFile:
    """A file and its number in the delivery."""

    number: int
    stored: StoredObject


@dataclass(frozen=True)
class FileOutcome:
    """The outcome of one file: staged, or rejected; neither if the driver must read the file."""

    number: int
    converted: Converted | None = None
    rejected: FileRejected | None = None

    def to_json(self) -> str:
        done, why = self.converted, self.rejected
        return json.dumps(
            {
                "number": self.number,
                "converted": done and [done.sha256, done.rows, done.added_columns],
                "rejected": why and [why.reason, why.found, why.expected, why.next_step],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "FileOutcome":
        outcome = json.loads(text)
        converted, rejected = None, None
        if outcome["converted"]:
            sha256, rows, added = outcome["converted"]
            converted = Converted(sha256, rows, frozenset(), tuple(added))
        if outcome["rejected"]:
            reason, found, expected, next_step = outcome["rejected"]
            rejected = FileRejected(reason, found=found, expected=expected, next_step=next_step)
        return cls(outcome["number"], converted, rejected)


@dataclass(frozen=True)
class ExecutorTask:
    """The files of a delivery in groups, one task per group.

    A task that cannot read reports the reason before opening a file. A Spark exception would be
    retried and logged with its stack trace.
    """

    converter: FileConverter
    rows: StagedRows
    groups: Sequence[Sequence[NumberedFile]]

    def problem(self, group: int) -> str:
        """Return why this process cannot read a group, or an empty string."""
        modules = ["pyarrow", "numpy"]
        if "avro" in self.converter.feed.formats:
            modules += ["fastavro", "cramjam"]
        if isinstance(self.rows, LocalRows) and not self.rows.folder.is_dir():
            return f"executors do not see {self.rows.folder}"
        try:
            for module in modules:
                importlib.import_module(module)
            self.converter.store.stat(self.groups[group][0].stored.key)
        except Exception as error:
            # Any error of boto3: credentials, permissions or network.
            return str(error).rstrip(".")
        return ""

    def read(self, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        """Yield the outcome of each file of some groups, or the problem of a group."""
        import pyarrow as pa

        for batch in batches:
            numbers: list[Any] = batch.column(0).to_pylist()
            for group in numbers:
                problem = self.problem(group)
                done = [] if problem else self._stage_group(group)
                outcomes = [problem] if problem else [outcome.to_json() for outcome in done]
                is_problem = [bool(problem)] * len(outcomes)
                yield pa.RecordBatch.from_arrays(
                    [pa.array(outcomes, pa.string()), pa.array(is_problem, pa.bool_())],
                    names=["outcome", "is_problem"],
                )

    def _stage_group(self, group: int) -> list[FileOutcome]:
        with (
            TemporaryDirectory(prefix=".executor-", dir=_folder(self.rows)) as folder,
            ThreadPoolExecutor(_AT_ONCE) as pool,
        ):
            return list(
                pool.map(lambda file: self.stage(file, Path(folder)), self.groups[group])
            )

    def stage(self, file: NumberedFile, folder: Path) -> FileOutcome:
        """Read a file once and put its rows where Spark reads them.

        A file that changed while being read stages no rows; the driver reads it. Retried or
        speculative tasks write the same rows under the same name.

        :param folder: contains the rows while they are written.
        """
        needs_driver = FileOutcome(file.number)
        target = folder / f"{file.number:06}.parquet"
        try:
            converted = self.converter.convert(file.stored, target)
        except FileRejected as why:
            return FileOutcome(file.number, rejected=why)
        except FileNotFoundError:
            return needs_driver
        is_same = self.converter.store.stat(file.stored.key) == file.stored
        if not is_same:
            target.unlink()
            return needs_driver
        name = self.rows.name(converted.sha256, file.number, by_executor=True)
        self.rows.put(target, name)
        with suppress(FileNotFoundError):
            target.unlink()
        return FileOutcome(file.number, converted)


def _folder(rows: StagedRows) -> Path | None:
    """Return where rows are written: on their target disk, or in Spark's temporary folder."""
    if isinstance(rows, LocalRows):
        return rows.folder.parent
    assert isinstance(rows, BucketRows)
    of_executor = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
    return Path(of_executor) if of_executor else None
