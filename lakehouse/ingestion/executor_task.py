"""What an executor of Spark does with delivered files: each is judged and staged there, by the
reader that one machine uses.

It needs this package, pyarrow, numpy, fastavro and cramjam for Avro, and boto3 where files are
in a bucket; nothing else of what the driver has.
"""

import importlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from lakehouse.errors import FileRejected
from lakehouse.ingestion.staged_rows import BucketRows, LocalRows, StagedRows
from lakehouse.ingestion.staging import Converted, FileConverter, ignore_progress
from lakehouse.storage.object_store import StoredObject

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "outcome string, is_problem boolean"
"""What came of a file, or why a task can read none."""
_AT_ONCE = 4
"""Small files that a task reads at once: it waits for S3 most of the time."""


@dataclass(frozen=True)
class NumberedFile:
    """A file, and its number in the delivery."""

    number: int
    stored: StoredObject


@dataclass(frozen=True)
class FileOutcome:
    """What an executor says of a file: its rows are staged, or it is refused; neither where the
    driver has to look at it.
    """

    number: int
    converted: Converted | None = None
    refused: FileRejected | None = None

    def to_json(self) -> str:
        """Return it as text, which has no value of a row."""
        done, why = self.converted, self.refused
        return json.dumps(
            {
                "number": self.number,
                "converted": done and [done.sha256, done.rows, done.added_columns],
                "refused": why and [why.reason, why.found, why.expected, why.next_step],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "FileOutcome":
        """Read what `to_json` wrote."""
        outcome = json.loads(text)
        converted, refused = None, None
        if outcome["converted"]:
            sha256, rows, added = outcome["converted"]
            converted = Converted(sha256, rows, frozenset(), tuple(added))
        if outcome["refused"]:
            reason, found, expected, next_step = outcome["refused"]
            refused = FileRejected(reason, found=found, expected=expected, next_step=next_step)
        return cls(outcome["number"], converted, refused)


@dataclass(frozen=True)
class ExecutorTask:
    """The files of a delivery by groups, of which each is a task.

    A task that cannot read says why before it opens a file, and no error of Spark's: that one
    would be tried again, and told with its stack.
    """

    converter: FileConverter
    rows: StagedRows
    groups: Sequence[Sequence[NumberedFile]]

    def problem(self, group: int) -> str:
        """Return why the files of a group cannot be read in this process; nothing where they can,
        as far as the first one tells.
        """
        for needed in ("fastavro", "cramjam") if "avro" in self.converter.feed.formats else ():
            if find_spec(needed) is None:
                return f"No module named {needed!r}"
        if isinstance(self.rows, LocalRows):
            is_there = self.rows.folder.is_dir()
            return "" if is_there else f"executors do not see {self.rows.folder}"
        for module in ("pyarrow", "numpy", "boto3"):
            try:
                importlib.import_module(module)
            except ImportError as error:
                return str(error)
        try:
            self.converter.store.stat(self.groups[group][0].stored.key)
        except Exception as error:
            # Whatever boto3 says: of credentials, of permissions, or of the way to S3.
            return str(error).rstrip(".")
        return ""

    def read(self, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        """Read the groups of the numbers in a batch, and yield what came of each file, or for a
        group why it cannot be read here.
        """
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
        """Read a file once, and put its rows where Spark reads them.

        Of a file that changed meanwhile no rows are put there: a task that is tried again, or
        twice at once, puts the same ones under the same name. The driver looks at it.

        :param folder: holds the rows while they are written.
        """
        driver_looks = FileOutcome(file.number)
        target = folder / f"{file.number:06}.parquet"
        try:
            converted = self.converter.convert(file.stored, target, ignore_progress)
        except FileRejected as why:
            return FileOutcome(file.number, refused=why)
        except FileNotFoundError:
            return driver_looks
        is_same = self.converter.store.stat(file.stored.key) == file.stored
        if not is_same:
            target.unlink()
            return driver_looks
        name = self.rows.name(converted.sha256, file.number, by_executor=True)
        self.rows.put(target, name)
        with suppress(FileNotFoundError):
            target.unlink()
        return FileOutcome(file.number, converted)


def _folder(rows: StagedRows) -> Path | None:
    """Return where rows are written: on the disk that they stay on, or among what goes with the
    executor.
    """
    if isinstance(rows, LocalRows):
        return rows.folder.parent
    assert isinstance(rows, BucketRows)
    of_executor = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
    return Path(of_executor) if of_executor else None
