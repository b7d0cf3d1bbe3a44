"""Value objects that describe the files collected by one ingest."""

from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse.errors import LakehouseError
from lakehouse.ingestion.feed_lock import Ingest
from lakehouse.ingestion.staging.staged_files import StagedFile
from lakehouse.storage.rejected_files import RejectedFile
from lakehouse.tables.quoting import quoted, shown


@dataclass(frozen=True)
class Delivery:
    """The files that one ingest collected, in order, staged for one append.

    `unsettled` are keys that were still being written or changed while being read; the next
    ingest collects them. `waiting` counts files beyond the feed's `max_files_per_run`.
    `not_moved` are errors of files that are to be rejected but stay in the inbox.
    """

    ingest: Ingest
    files: Sequence[StagedFile] = ()
    rejected: Sequence[RejectedFile] = ()
    unsettled: Sequence[str] = ()
    not_moved: Sequence[LakehouseError] = ()
    waiting: int = 0
    remark: str = ""
    """Why the driver read files that executors should have read."""
    by_executors: bool = False
    """Whether executors received files; a task that was abandoned may still stage rows."""

    @property
    def arriving(self) -> list[tuple[str, str]]:
        """(`_source_file`, `_source_sha256`) of each file: the key that makes the append
        idempotent.
        """
        return [(file.source_file, file.sha256) for file in self.files]

    @property
    def rows(self) -> int:
        """Rows before cleaning (`nr_rows`), including rows already in bronze."""
        return sum(file.rows for file in self.files)

    @property
    def size_bytes(self) -> int:
        return sum(file.stored.size_bytes for file in self.files)

    @property
    def added_columns(self) -> tuple[str, ...]:
        """Undeclared columns that files added, in order of appearance."""
        return tuple(dict.fromkeys(name for file in self.files for name in file.added_columns))

    @property
    def suppressed_rows(self) -> int:
        """Rows of erased data subjects, which do not land."""
        return sum(file.suppressed_rows for file in self.files)

    @property
    def warnings(self) -> list[str]:
        """One line per file with undeclared columns or with rows of erased data subjects."""
        added = [self._added(file) for file in self.files if file.added_columns]
        suppressed = [_describe_suppressed(file) for file in self.files if file.suppressed_rows]
        return [*added, *suppressed, *filter(None, [self.remark])]

    def _added(self, file: StagedFile) -> str:
        return (
            f"{shown(file.source_file)} brings {', '.join(map(quoted, file.added_columns))},"
            f" which feed {self.ingest.feed.name} does not declare; added to"
            f" {self.ingest.feed.table} as a nullable string. Declare it to give it a meaning."
        )


def _describe_suppressed(file: StagedFile) -> str:
    rows = f"{file.suppressed_rows:,} row" + "s" * (file.suppressed_rows != 1)
    return (
        f"{shown(file.source_file)} was delivered with {rows} of people who were erased:"
        " suppressed, here and in the file."
    )


def describe_rejected(file: RejectedFile) -> str:
    """Return a line that reports a rejected file."""
    return (
        f"{shown(file.source_file)} was rejected: {file.why} It is kept as {shown(file.key)}."
    )
